import { badOption } from './errors.ts'

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** Bytes of a size like `512M`. Throws CONFIG_INVALID. */
export function bytesOf(size: string): number {
  const [, digits, unit] = /^(\d+)([KMG]?)$/.exec(size) ?? []
  if (digits === undefined || unit === undefined || Number(digits) === 0) throw badOption('memory_limit', size)
  return Number(digits) * UNITS[unit]!
}
