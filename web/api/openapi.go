package api

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

// openAPIDocument describes the API (OpenAPI 3.1); a test holds it against the
// route table.
//
//go:embed openapi.json
var openAPIDocument []byte

func (a *API) openAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/json", openAPIDocument)
}
