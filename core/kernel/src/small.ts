/** Whether a value of plain data is no longer than so many characters, more or less: at most as much of it is looked at, so that a stranger's costs no time. */
export const isSmall = (value: unknown, most: number): boolean => leftAfter(value, most) >= 0

function leftAfter(value: unknown, most: number): number {
  if (typeof value === 'string') return most - value.length - 2
  if (typeof value !== 'object' || value === null) return most - 8
  let left = most - 2
  // by its keys one after the other: to list them all is what would cost the time
  for (const key in value) {
    if (left < 0) return left
    left = leftAfter(Reflect.get(value, key), left - key.length - 4)
  }
  return left
}
