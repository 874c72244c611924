package component

import (
	"strconv"
	"strings"
	"time"
)

// Series is one line of a stacked chart: its name in words, the class that
// colours it, and a value for each bucket.
type Series struct {
	Name   string
	Class  string // from a fixed list, such as cat-auth
	Values []int
}

// CategorySeries makes the stacked series of a chart by failure category, in
// the fixed order; categories without a value stay out.
func CategorySeries(values map[string][]int) []Series {
	var series []Series
	for _, category := range Categories {
		one := Series{Name: CategoryLook(category).Word, Class: "cat-" + category, Values: values[category]}
		if one.Total() > 0 {
			series = append(series, one)
		}
	}
	return series
}

// Total is the sum over all buckets.
func (s Series) Total() int {
	total := 0
	for _, value := range s.Values {
		total += value
	}
	return total
}

// stack is a chart laid out: one path a series, since a rectangle for every
// bucket and category would be thousands of elements.
type stack struct {
	paths       []string
	columns     int
	most        int // the top of the scale
	peak        int // the highest bucket
	peakAt      int // its index
	totalValues int
}

const chartHeight = 100

func layOut(series []Series) stack {
	s := stack{peakAt: -1}
	for _, one := range series {
		s.columns = max(s.columns, len(one.Values))
	}
	sums := make([]int, s.columns)
	for _, one := range series {
		for i, value := range one.Values {
			sums[i] += value
			s.totalValues += value
		}
	}
	for i, sum := range sums {
		if sum > s.peak {
			s.peak, s.peakAt = sum, i
		}
	}
	s.most = niceTop(s.peak)
	base := make([]int, s.columns)
	for _, one := range series {
		var path strings.Builder
		for i, value := range one.Values {
			if value <= 0 {
				continue
			}
			top := float64(chartHeight) * (1 - float64(base[i]+value)/float64(s.most))
			height := float64(chartHeight) * float64(value) / float64(s.most)
			path.WriteString("M" + short(float64(i)*3) + " " + short(top) + "h2.6v" + short(height) + "h-2.6z")
			base[i] += value
		}
		s.paths = append(s.paths, path.String())
	}
	return s
}

func short(f float64) string {
	return strings.TrimSuffix(strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), "0"), ".")
}

// niceTop rounds the top of a scale up to a number that reads well.
func niceTop(peak int) int {
	for power := 1; ; power *= 10 {
		for _, step := range []int{1, 2, 3, 4, 6, 8} {
			if peak <= step*power {
				return step * power
			}
		}
	}
}

// chartDay is a label below the chart.
type chartDay string

// dayLabels names every second day of the hours from start.
func dayLabels(start time.Time, hours int) []chartDay {
	var days []chartDay
	for hour := 0; hour < hours; hour += 24 {
		days = append(days, chartDay(start.UTC().Add(time.Duration(hour)*time.Hour).Format("2 Jan")))
	}
	return days
}

// bars is the path of a small chart without scale.
func bars(values []int) string {
	most := 1
	for _, value := range values {
		most = max(most, value)
	}
	var path strings.Builder
	for i, value := range values {
		if value <= 0 {
			continue
		}
		height := max(float64(value)/float64(most)*20, 1)
		path.WriteString("M" + strconv.Itoa(i*4) + " " + short(20-height) + "h3v" + short(height) + "h-3z")
	}
	return path.String()
}
