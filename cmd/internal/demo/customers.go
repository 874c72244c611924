package demo

import (
	"context"
	"fmt"
)

// Ids of customers: those of the noise, those of the stories, and some that the
// invoice run names although they were deleted meanwhile.
const (
	firstCustomer   = 1000
	customers       = 600
	runCustomer     = 6001
	deletedCustomer = 6901
)

// migrateCustomers creates the application's own table of customers, which a
// declared check asks before an invoice is sent again.
func (w *World) migrateCustomers(ctx context.Context) error {
	for _, sql := range []string{`
		CREATE TABLE IF NOT EXISTS demo_app.customers (id bigint PRIMARY KEY)`, fmt.Sprintf(`
		INSERT INTO demo_app.customers (id)
		SELECT generate_series(%d, %d)
		UNION SELECT generate_series(%d, %d)
		UNION SELECT unnest(ARRAY[4217, 4218, 4301])
		ON CONFLICT (id) DO NOTHING`, firstCustomer, firstCustomer+customers-1, runCustomer, runCustomer+99),
	} {
		if _, err := w.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("demo: customers: %w", err)
		}
	}
	return nil
}
