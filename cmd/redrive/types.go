package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

type typesCmd struct {
	Check typesCheckCmd `cmd:"" help:"Check a catalogue file; every fault with its line."`
}

type typesCheckCmd struct {
	File string `arg:"" help:"The YAML file." type:"path"`
}

// Run checks.
func (t *typesCheckCmd) Run() error {
	c, err := loadCatalogue(t.File)
	if err != nil {
		return err
	}
	fmt.Printf("%d types, %d sources: no fault\n", len(c.Types()), len(c.Sources))
	return nil
}

func loadCatalogue(path string) (*jobtype.Catalogue, error) {
	return jobtype.Load(os.DirFS(filepath.Dir(path)), filepath.Base(path))
}
