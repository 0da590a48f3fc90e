import { Args, Flags } from '@svc/cli/command'

export const WORKFLOW_ARG = {
  workflow: Args.string({ description: 'Name or path of a workflow', required: true, ignoreStdin: true }),
}
export const RUN_ARG = { run: Args.string({ description: 'Id of a run', required: true, ignoreStdin: true }) }
export const DETACH_FLAG = {
  detach: Flags.boolean({ summary: 'Only begin it, print its id and leave it to a server of this home', default: false }),
}
export const FOLLOW_FLAG = { follow: Flags.boolean({ summary: 'Show the run to its end', default: false }) }

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
