package component

// icons are drawn for a 24 by 24 box with a stroke; no icon font or library.
var icons = map[string]string{
	"activity":     "M3 12h4l3-8 4 16 3-8h4",
	"alert":        "M12 4 2.500 20.500h19zM12 10v5M12 17.800v.2",
	"back":         "M19 12H5m6-6-6 6 6 6",
	"bin":          "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
	"block":        "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM5.700 5.700l12.600 12.600",
	"check":        "m5 12.500 4.500 4.500L19 7.500",
	"check-double": "m2 13 4 4 8-9M11 16l1 1 9-10",
	"chevron":      "m8 10 4 4 4-4",
	"circle":       "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16z",
	"clock":        "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.500 2",
	"copy":         "M9 9h11v11H9zM5 15H4V4h11v1",
	"cross":        "M6 6l12 12M18 6 6 18",
	"dash":         "M6 12h12",
	"first":        "M18 6l-6 6 6 6M7 6v12",
	"flame":        "M12 3c.5 4 5 5.500 5 11a5 5 0 0 1-10 0c0-2 1-3.200 2-4 .3 1.500 1 2.300 2 2.500C10.500 9 10.500 6 12 3z",
	"flask":        "M9 3h6M10 3v6l-5 9a2 2 0 0 0 2 3h10a2 2 0 0 0 2-3l-5-9V3M7.500 15h9",
	"gauge":        "M4 17a8 8 0 1 1 16 0M12 17l4-6",
	"group":        "M4 5h16M4 10h16M4 15h10M4 20h6",
	"help":         "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .8-1 1.700M12 16.800v.2",
	"hourglass":    "M7 3h10M7 21h10M8 3v4l4 5-4 5v4M16 3v4l-4 5 4 5v4",
	"inbox":        "M4 13l2.500-8h11L20 13v6H4zM4 13h5l1 2h4l1-2h5",
	"info":         "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v6M12 7.300v.2",
	"key":          "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l8-8M16 7l3 3",
	"layers":       "m12 3 9 5-9 5-9-5zM3 13l9 5 9-5",
	"link":         "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
	"list":         "M8 6h12M8 12h12M8 18h12M4 6h.010M4 12h.010M4 18h.010",
	"lock":         "M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3",
	"menu":         "M4 7h16M4 12h16M4 17h16",
	"moon":         "M20 14a8 8 0 1 1-10-10 7 7 0 0 0 10 10z",
	"next":         "m9 6 6 6-6 6",
	"note":         "M5 4h14v11l-5 5H5zM14 20v-5h5",
	"out":          "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
	"pause":        "M8 5v14M16 5v14",
	"pencil":       "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
	"person":       "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.500 20c1-4 4-5.500 7.500-5.500s6.500 1.500 7.500 5.500",
	"plug":         "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
	"prev":         "m15 6-6 6 6 6",
	"question":     "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.200-1.500 2.400M12 17.500v.2",
	"replay":       "M5 12a7 7 0 1 0 2.200-5.100M5 4v4.500h4.500",
	"save":         "M12 4v11m-4-4 4 4 4-4M5 19h14",
	"search":       "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
	"search-off":   "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4M8.500 11h5",
	"send":         "M4 12 20 4l-5 16-3.500-6.500zM11.500 13.500 20 4",
	"shield":       "M12 3l8 3v6c0 5-3.500 8-8 9-4.500-1-8-4-8-9V6z",
	"skip":         "M5 6l7 6-7 6zM13 6l7 6-7 6z",
	"stack":        "M4 6h16v4H4zM4 14h16v4H4z",
	"sun":          "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600 19 19M19 5l-1.400 1.400M6.400 17.600 5 19",
	"tag":          "M4 4h8l8 8-8 8-8-8zM8 8h.010",
	"target":       "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
	"users":        "M9 5a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM2.500 19c.8-3.500 3.200-5 6.500-5s5.700 1.500 6.500 5M16 5.500a3 3 0 0 1 0 6M18 14.500c2 .6 3.200 2 3.700 4.500",
	"wave":         "M3 14c2-6 4-6 6 0s4 6 6 0 4-6 6 0",
	"wrench":       "M14 6a4.500 4.500 0 0 1 6-2l-3 3 1 2.500 2.500.500 1-2a4.500 4.500 0 0 1-6.500 5L8 20l-4-4 7-7a4.500 4.500 0 0 1 3-3z",
}

// iconPath returns the drawing of an icon; an unknown name draws a circle, so
// that a mistake shows in a picture rather than as a hole.
func iconPath(name string) string {
	if d, ok := icons[name]; ok {
		return d
	}
	return icons["circle"]
}
