package category_test

import (
	"slices"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/category"
	"github.com/redrive-dlq/redrive/dlq/failure"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		class, message string
		want           category.Category
		code           string
	}{
		{"panic", "index out of range [3] with length 3", category.Unknown, ""},
		{"RangeError", "quantity is out of range", category.InvalidInput, "validation"},
		{"HTTP 500", "GET https://api.example.test/v1/people?page=2 -> 500", category.Transient, "http_500"},
		{"HttpError", "provider answered 503 Service Unavailable", category.Transient, "http_503"},
		{"HttpError", "HTTP/1.1 502", category.Transient, "http_502"},
		{"HttpError", "status code 504", category.Transient, "http_504"},
		{"HttpError", "408 Request Timeout", category.Transient, "http_408"},
		{"HttpError", "503 with Retry-After: 30", category.Transient, "http_503"},
		{"Net::ReadTimeout", "epoch seconds as an integer", category.Transient, "timeout"},
		{"*url.Error", "context deadline exceeded", category.Transient, "timeout"},
		{"*net.OpError", "dial tcp 127.0.0.1:5432: connect: connection refused", category.Transient, "connection"},
		{"*net.DNSError", "lookup db: no such host", category.Transient, "name_lookup"},
		{"rpc.Unavailable", "stock service away", category.Transient, "unavailable"},
		{"PgError", "deadlock detected (SQLSTATE 40P01)", category.Transient, "database"},
		{"Timeout", "gave up after 300 s", category.Transient, "timeout"},
		{"HttpError", "status=429", category.Throttled, "http_429"},
		{"StripeError", "429 Too Many Requests", category.Throttled, "rate_limit"},
		{"ApiError", "403: API rate limit exceeded", category.Throttled, "rate_limit"},
		{"ApiError", "quota exceeded", category.Throttled, "quota"},
		{"ApiError", "busy, try again in 60 seconds", category.Throttled, "retry_after"},
		{"HttpError", "404 Not Found", category.MissingState, "http_404"},
		{"HttpError", "answered 410", category.MissingState, "http_410"},
		{"pgx", "no rows in result set", category.MissingState, "missing_record"},
		{"ActiveRecord::RecordNotFound", "Couldn't load User", category.MissingState, "missing_record"},
		{"Error", "no customer 4711", category.MissingState, "missing_record"},
		{"HttpError", "400 invalid recipient: alex@@example.com", category.InvalidInput, "invalid_recipient"},
		{"MailError", "invalid recipient", category.InvalidInput, "invalid_recipient"},
		{"HttpError", "provider answered 422", category.InvalidInput, "http_422"},
		{"Error", "missing required field: customer_id", category.InvalidInput, "missing_field"},
		{"ValidationError", "amount", category.InvalidInput, "validation"},
		{"SyntaxError", "Unexpected token } in JSON at position 12", category.InvalidInput, "unreadable"},
		{"UpstreamError", "peer answered 401 and quoted our header back", category.Auth, "http_401"},
		{"HttpError", "status 403", category.Auth, "http_403"},
		{"HttpError", "400 API key expired", category.Auth, "key_expired"},
		{"ApiError", "permission denied", category.Auth, "permission"},
		{"Error", "boom", category.Unknown, ""},
		{"CardDeclined", "declined for order 7031908301661318", category.Unknown, ""},
		{"Error", "order 503 is odd", category.Unknown, ""},
		{"Error", "took 500 ms at 10.0.0.404", category.Unknown, ""},
		{"Error", "expected 200, got 503", category.Transient, "http_503"},
		{"Error", "responded with 404", category.MissingState, "http_404"},
		{"Error", "got 503 rows in a batch with 400 items", category.Unknown, ""},
		{"", "", category.Unknown, ""},
	}
	for _, tt := range tests {
		t.Run(tt.class+" "+tt.message, func(t *testing.T) {
			t.Parallel()
			got, codes := category.Classify(failure.Failure{Class: tt.class, Message: tt.message})
			if got != tt.want {
				t.Fatalf("got %s %v, want %s", got, codes, tt.want)
			}
			if tt.code == "" && len(codes) > 0 || tt.code != "" && !slices.Contains(codes, tt.code) {
				t.Errorf("codes %v, want %q among them", codes, tt.code)
			}
		})
	}
}

func TestClassifyRootFirst(t *testing.T) {
	t.Parallel()
	f := failure.Failure{Class: "UpstreamError", Message: "peer answered 503", Causes: []failure.Cause{
		{Class: "Wrapper", Message: "failed"}, {Class: "Mail", Message: "invalid recipient"}}}
	if got, _ := category.Classify(f); got != category.InvalidInput {
		t.Errorf("the root cause did not decide: %s", got)
	}
	f.Causes[1].Message = "boom"
	if got, _ := category.Classify(f); got != category.Transient {
		t.Errorf("the wrapper did not decide when the root is silent: %s", got)
	}
}

func TestClassifyPoison(t *testing.T) {
	t.Parallel()
	if got, codes := category.Classify(failure.Failure{Message: "boom", GaveUp: "poison"}); got != category.InvalidInput || codes[0] != "poison" {
		t.Errorf("got %s %v", got, codes)
	}
	if got, _ := category.Classify(failure.Failure{Message: "boom", GaveUp: "attempts"}); got != category.Unknown {
		t.Errorf("got %s", got)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range category.All() {
		for _, word := range []string{string(c), c.Label(), " " + string(c) + " "} {
			if got, ok := category.Parse(word); !ok || got != c {
				t.Errorf("Parse(%q) = %q, %v", word, got, ok)
			}
		}
		if a := category.AdviceFor(c); a.Sentence == "" || a.Action == "" {
			t.Errorf("no advice for %s", c)
		}
	}
	for _, word := range []string{"", "temporary", "missing", "invalid", "transients", "by status"} {
		if got, ok := category.Parse(word); ok {
			t.Errorf("Parse(%q) = %q, want refusal", word, got)
		}
	}
	if got, _ := category.Parse("Missing-State"); got != category.MissingState {
		t.Errorf("got %q", got)
	}
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	for _, c := range category.All() {
		want := c == category.Transient || c == category.Throttled
		if category.Retryable(c) != want {
			t.Errorf("Retryable(%s) = %v", c, !want)
		}
		if category.Retryable(c) && category.NeedsFix(c) {
			t.Errorf("%s can't be both", c)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add("HTTP/1.1 503")
	f.Add("-> 500")
	f.Fuzz(func(t *testing.T, s string) {
		if got := category.Status(s); got != 0 && (got < 400 || got > 599) {
			t.Errorf("Status(%q) = %d", s, got)
		}
	})
}
