package jobtype

// saidConcurrency is what one target says of its destination.
type saidConcurrency struct {
	environment, destination string
	limit                    int
	at                       value
}

func (r *reader) say(environment string, t Target, at value) {
	r.concurrency = append(r.concurrency, saidConcurrency{environment, t.Destination(), t.Concurrency, at})
}

// shareConcurrency makes one limit of what targets say of one destination: it
// holds for all types together, so two that differ contradict each other, and
// one that says nothing has what another says.
func (r *reader) shareConcurrency(c *Catalogue) {
	type place struct{ environment, destination string }
	said := map[place]saidConcurrency{}
	for _, s := range r.concurrency {
		first, known := said[place{s.environment, s.destination}]
		switch {
		case !known:
			said[place{s.environment, s.destination}] = s
		case first.limit != s.limit:
			s.at.fault("says %d for %s in %s, and %s in line %d says %d; a destination has one limit for all its types",
				s.limit, s.destination, s.environment, first.at.where, first.at.line(), first.limit)
		}
	}
	for _, t := range c.types {
		for environment, target := range t.Targets {
			if s, ok := said[place{environment, target.Destination()}]; ok {
				target.Concurrency = s.limit
				t.Targets[environment] = target
			}
		}
	}
}
