package demo

import (
	"embed"
	"fmt"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

//go:embed catalogue
var catalogueFiles embed.FS

// LoadCatalogue reads the demo's catalogue file.
func LoadCatalogue() (*jobtype.Catalogue, error) {
	c, err := jobtype.Load(catalogueFiles, "catalogue/types.yaml")
	if err != nil {
		return nil, fmt.Errorf("demo catalogue: %w", err)
	}
	return c, nil
}
