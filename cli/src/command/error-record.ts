import { type ErrorParts, type SvcError, svcError } from '@svc/core'
import type { ErrorRecord } from '@svc/core/contracts'

/** An error record of the API as an error for a person, with a hint where the record has facts for one. */
export function errorFromRecord(
  { error, error_code: code, details }: Omit<ErrorRecord, 'success'>,
  { hint = hintOf(code, details), ...parts }: Pick<ErrorParts, 'where' | 'hint' | 'cause'> = {}
): SvcError {
  return svcError(code, error, { ...parts, details: { ...details }, ...(hint === undefined ? {} : { hint }) })
}

const MOST_NAMES = 20

function hintOf(code: string, { available, allowed, scope, retry_after: seconds }: ErrorRecord['details']): string | undefined {
  const names = [available, allowed].find(Array.isArray)?.slice(0, MOST_NAMES)
  if (names && names.length > 0) return `one of: ${names.join(', ')}`
  if (code === 'AUTHENTICATION_FAILED') return 'put an API key or a token into SVC_API_KEY'
  if (code === 'FORBIDDEN' && typeof scope === 'string') return `put a credential with the scope "${scope}" into SVC_API_KEY`
  return typeof seconds === 'number' ? `try again in ${seconds} s` : undefined
}
