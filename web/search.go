package web

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/views/route"
)

// search takes the search box's one word for a job's name and leads there: to
// the job itself, or to the list of all that bear the name. Otherwise it
// returns the word that named nothing; empty when the text is a filter.
func (s *Server) search(c echo.Context) (word string, done bool, err error) {
	word, is := filter.Word(c.QueryParam(route.ParamQuery))
	if !is {
		return "", false, nil
	}
	found, err := dlq.Search(c.Request().Context(), s.config.Pool, s.principal(c), word, s.environment(c))
	switch {
	case err != nil:
		return "", false, err
	case found.Only != 0:
		return "", true, c.Redirect(http.StatusSeeOther, route.Job(formatID(found.Only)))
	case found.Filter.Empty():
		return word, false, nil
	}
	values := found.Filter.Values()
	values.Set(route.ParamStatus, route.AnyStatus)
	return "", true, c.Redirect(http.StatusSeeOther, route.Jobs+"?"+values.Encode())
}

// elsewhere is the search for the same word in all environments; empty when
// that is what was done.
func (s *Server) elsewhere(c echo.Context) string {
	if s.environment(c) == "" {
		return ""
	}
	return route.Jobs + "?" + url.Values{route.ParamQuery: {c.QueryParam(route.ParamQuery)}}.Encode()
}
