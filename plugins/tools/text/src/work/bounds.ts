import { refusal } from '@svc/worker-pool/child'

/** The most characters that a call answers. */
const LONGEST = 1_000_000

/** Refuses an answer that nobody could read. */
export function notTooLong(characters: number, hint: string): void {
  if (characters > LONGEST) throw refusal('RESULT_TOO_LARGE', `the result has more than ${LONGEST} characters`, { hint })
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String((error as { message?: unknown })?.message ?? error)
