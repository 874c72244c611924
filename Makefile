# make build   everything that is needed, then bin/redrive
# make demo    the console with living sample data: LISTEN= and DATA_DIR= change where
# make test    everything that is needed, then all tests
# make check   generated code, format, vet, lint, vulnerabilities
# make bench   prints "name: value" lines
# make clean   removes what was built; data stays

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build
.PHONY: build demo test check bench clean generate static

LISTEN ?= 127.0.0.1:8080
# Root's home is closed to the account that PostgreSQL runs as.
ifeq ($(shell id -u),0)
DATA_DIR ?= /var/lib/redrive/demo
else
DATA_DIR ?= $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/redrive/demo
endif

# Packages in which threads meet: they run a second time, under the race
# detector. All of them would take minutes, and some measure time.
RACE_PKGS ?= ./internal/... ./migrations/... ./audit/... ./rbac/... ./dlq ./dlq/ledger/... ./dlq/replay/... ./dlq/source/... ./dlq/target/... ./dlq/worker/...
TEST_TIMEOUT ?= 20m

static_sources := $(shell find static/src static/build.mjs static/package.json -type f 2>/dev/null) \
	$(shell find views -name '*.templ' -type f 2>/dev/null)

build: static
	go build -trimpath -buildvcs=false -o bin/redrive ./cmd/redrive

demo: build
	scripts/setup postgres
	exec bin/redrive demo --listen "$(LISTEN)" --data-dir "$(DATA_DIR)"

test: static
	scripts/setup postgres
	scripts/setup browser
	go test -buildvcs=false -timeout $(TEST_TIMEOUT) ./...
	@if command -v "$$(go env CC)" >/dev/null; then \
		pkgs=$$(go list -e -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' $(RACE_PKGS) 2>/dev/null); \
		echo "go test -race:" $$pkgs; \
		CGO_ENABLED=1 go test -buildvcs=false -race -short -timeout $(TEST_TIMEOUT) $$pkgs; \
	else echo "race detector: not run, it needs a C compiler"; fi

check: static
	go mod tidy -diff
	scripts/check-generated
	scripts/check-format
	go vet -buildvcs=false ./...
	go tool staticcheck ./...
	scripts/check-vulnerabilities

bench: build
	scripts/setup postgres
	bin/redrive bench

generate:
	go tool templ generate -path views

# Styles and scripts. The stamps are newer than all they were made from, so
# that a second build does nothing.
static: static/build.stamp

static/node_modules.stamp: static/package.json static/package-lock.json
	npm ci --prefix static
	@touch $@

# The stylesheet holds the classes that the views use.
static/build.stamp: static/node_modules.stamp $(static_sources)
	npm run build --prefix static
	@touch $@

clean:
	rm -rf bin static/node_modules static/*.stamp
	find static/dist -mindepth 1 ! -name .gitkeep -delete
