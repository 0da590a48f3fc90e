const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const DAY = 86_400_000
/** No calendar of business hours has a longer gap than this. */
const MOST_DAYS = 3660

/**
 * Opening hours of a week, in one time zone.
 *
 * @typedef {{ timezone: string, days: readonly string[], from: string, to: string, holidays: readonly string[] }} Hours
 */

/**
 * Returns the time at which `length` milliseconds have passed since `start`. With `hours`, only business time counts.
 * Returns `undefined` when the hours leave no such time within ten years.
 *
 * @type {(start: number, length: number, hours?: Hours) => number | undefined}
 */
export function dueTime(start, length, hours) {
  if (!hours) return start + length
  const clock = zoneClock(hours.timezone)
  let left = length
  // A day of the calendar as its midnight in UTC: adding DAY leads to the next, whatever the clocks of the zone do.
  let day = Math.floor(clock.local(start) / DAY) * DAY
  for (let count = 0; count < MOST_DAYS; count++, day += DAY) {
    if (!isOpen(day, hours)) continue
    const opens = Math.max(start, clock.instant(day + minutes(hours.from)))
    const closes = clock.instant(day + minutes(hours.to))
    if (closes <= opens) continue
    if (left <= closes - opens) return opens + left
    left -= closes - opens
  }
  return undefined
}

/** @type {(day: number, hours: Hours) => boolean} */
const isOpen = (day, { days, holidays }) => {
  const date = new Date(day)
  return days.includes(DAYS[date.getUTCDay()] ?? '') && !holidays.includes(date.toISOString().slice(0, 10))
}

/** `09:30` in milliseconds since midnight. */
const minutes = (/** @type {string} */ text) => {
  const [hour = 0, minute = 0] = text.split(':').map(Number)
  return (hour * 60 + minute) * 60_000
}

/** Converts between instants and the wall clock of a zone, both in milliseconds. Throws a RangeError for an unknown zone. */
function zoneClock(/** @type {string} */ timeZone) {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const local = (/** @type {number} */ instant) => {
    const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) + (instant % 1000)
  }
  const instant = (/** @type {number} */ wall) => {
    const first = wall - (local(wall) - wall)
    // The offset at the estimate can differ from that at the result where the clocks change.
    return first - (local(first) - wall)
  }
  return { local, instant }
}
