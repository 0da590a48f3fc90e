/** What one frame of a far side that is not trusted may be once it is read: it costs what it would cost as JSON, where nothing is shared. */
export interface FrameBudget {
  /** Values, keys not counted; each as often as it is reached. */
  readonly values: number
  /** Characters of texts and keys, and bytes. */
  readonly characters: number
}

/** A frame without shared parts has no more values than bytes: so often it may share what is in it. */
const SHARING = 16
/** So small a frame may share as it likes. */
const FREE_VALUES = 1000
/** Levels of lists and objects: twice what a value may have, as messages, arguments and records stand around it. */
const DEEPEST = 1000
/** Larger ones take long to be written. */
const LARGEST = 2n ** 4096n

interface RemainingBudget {
  values: number
  characters: number
}

/**
 * Why a value that came in a frame of so many bytes is more than it may be; undefined where it is not. Walks it once and stops where the budget is spent:
 * a list of 2³² holes, a graph that holds itself and one that is 2⁴⁰ values as JSON all fit into a few bytes.
 */
export function overBudget(value: unknown, bytes: number, budget: FrameBudget): string | undefined {
  const values = Math.min(budget.values, FREE_VALUES + SHARING * bytes)
  const purse = { values, characters: budget.characters }
  const why = spend(value, purse, DEEPEST)
  if (purse.values < 0) return `it holds more than ${values} values`
  if (purse.characters < 0) return `it holds more than ${budget.characters} characters and bytes`
  return why
}

const SPENT = 'the budget is spent'

function spend(value: unknown, purse: RemainingBudget, depth: number): string | undefined {
  if (--purse.values < 0) return SPENT
  if (typeof value === 'string') return spendCharacters(value.length, purse)
  if (typeof value === 'bigint')
    return value > LARGEST || value < -LARGEST ? 'it holds an integer of more than 4096 bits' : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === 0) return `it is nested deeper than ${DEEPEST} levels`
  if (Array.isArray(value)) return spendList(value, purse, depth - 1)
  if (Object.getPrototypeOf(value) === Object.prototype) return spendMembers(value as Record<string, unknown>, purse, depth - 1)
  if (value instanceof Uint8Array) return spendCharacters(value.byteLength, purse)
  return value instanceof Date ? undefined : `it holds ${Object.prototype.toString.call(value)}`
}

function spendCharacters(count: number, purse: RemainingBudget): string | undefined {
  purse.characters -= count
  return purse.characters < 0 ? SPENT : undefined
}

function spendList(list: readonly unknown[], purse: RemainingBudget, depth: number): string | undefined {
  // its length may be a lie: nothing is done for each place before it is known to be paid for
  if (list.length > purse.values) return ((purse.values = -1), SPENT)
  if (Object.keys(list).length !== list.length) return 'it holds a list with holes or with members of its own'
  for (const item of list) {
    const why = spend(item, purse, depth)
    if (why !== undefined) return why
  }
  return undefined
}

function spendMembers(object: Record<string, unknown>, purse: RemainingBudget, depth: number): string | undefined {
  for (const key in object) {
    const why = spendCharacters(key.length, purse) ?? spend(object[key], purse, depth)
    if (why !== undefined) return why
  }
  return undefined
}
