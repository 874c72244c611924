package route

// Confirm is the page that asks for the passphrase again before something grave.
const Confirm = Account + "/confirm"
