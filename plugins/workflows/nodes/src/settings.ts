import { schema } from '@svc/core'
import { type FetchConfig, fetchKeys } from '@svc/safe-fetch'
import { DURATION_PATTERN, durationMs } from '@svc/workflow-lang'
import { invalid } from './errors.ts'

/** The section `workflow_nodes.http`. */
export const HTTP_CONFIG = schema<FetchConfig>({
  type: 'object',
  additionalProperties: false,
  properties: fetchKeys({ timeoutMs: 60_000, longestMs: 3_600_000, maxBytes: 4_194_304 }),
})

/** Schema of a duration. */
export const duration = (description: string) =>
  ({
    type: 'string',
    pattern: DURATION_PATTERN,
    patternHint: 'must be a duration such as 30s, 5m, 2h, 7d',
    description,
  }) as const

/** The end of a duration that starts now, in Unix milliseconds. Throws INVALID_VALUE. */
export function endOf(field: string, length: string): number {
  const ms = durationMs(length)
  if (ms === undefined) throw invalid(field, 'must be a duration such as 30s, 5m, 2h, 7d', { value: length.slice(0, 100) })
  return Date.now() + ms
}
