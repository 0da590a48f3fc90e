export const USAGE = {
  list: 'workflows list [--json]',
  show: 'workflows show <name or path> [--json]',
  validate: 'workflows validate <name or file>... [--json]',
  graph: 'workflows graph <name or path> [--svg <file>]',
  run: 'workflows run <name or path> [--input <json or @file>] [--param <name>=<value>]... [--detach] [--json]',
  runs: 'workflows runs [--workflow <name>] [--status running|completed|failed] [--limit <number>] [--json]',
  status: 'workflows status <run> [--follow] [--json]',
  cancel: 'workflows cancel <run> [--json]',
  answer: 'workflows answer <run> [<step>] <answer> [--follow] [--json]',
  retry: 'workflows retry <run> [--detach] [--json]',
} as const

export const DETACH_FLAG = { detach: { type: 'boolean', default: false } } as const
export const FOLLOW_FLAG = { follow: { type: 'boolean', default: false } } as const

const MINUTE = 60_000

/** A length of time for a person. */
export function shownMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

/** `3 tokens`, `1 token`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
