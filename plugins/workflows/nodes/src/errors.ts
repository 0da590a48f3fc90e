import { codeOf, messageOf, svcError } from '@svc/core'
import type { PublicError } from '@svc/core/contracts'

const clip = (text: string, most = 200) => (text.length > most ? `${text.slice(0, most)}…` : text)

/** A service that a node works with is not there: the node is known all the same, so that definitions can be read and drawn. */
export const missingService = (type: string, what: string, plugin: string) =>
  svcError('SERVICE_MISSING', `nodes of the type "${type}" need ${what}, and there is none here`, {
    hint: `add "${plugin}" to "plugins"`,
  })

export const invalid = (field: string, reason: string, more: Readonly<Record<string, unknown>> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

/** It was running when its process ended, and what it does is not to be done twice. */
export const interrupted = (node: string, why: string) =>
  svcError('NODE_INTERRUPTED', `the process that ran the node "${node}" ended before it had, and ${why}`, {
    hint: 'look whether it has done its work, and retry the run; one that may run twice says so with "repeatable: true"',
  })

export const noCallsLeft = (node: string) =>
  svcError('BUDGET_EXHAUSTED', `no tool call is left for the node "${node}"`, { hint: 'raise "budget"' })

/** The error of a child, as the node's own. */
export const raised = ({ code, message, details }: PublicError) => svcError(code, message, { details })

export const toolUnknown = (tool: string) =>
  svcError('TOOL_UNKNOWN', `there is no tool "${clip(tool)}" that a workflow may call`, {
    details: { tool: clip(tool) },
    hint: '`svc tools list` tells which there are',
  })

export const toolDenied = (tool: string) =>
  svcError('TOOL_DENIED', `the person who was asked did not allow the tool "${tool}"`, { details: { tool } })

export const toolFailed = (tool: string, words: string, cause?: unknown) =>
  svcError('TOOL_EXECUTION_FAILED', `the tool "${tool}" failed: ${clip(words, 2_000)}`, {
    details: { tool, ...(codeOf(cause) === undefined ? {} : { code: codeOf(cause) }) },
    cause,
  })

export const rejected = (node: string) =>
  svcError('NOT_APPROVED', `the node "${node}" was not approved, and has no branch "rejected"`, {
    hint: 'add the branch, or "catch"',
  })

export const unanswered = (node: string) =>
  svcError('NOT_ANSWERED', `nobody answered the node "${node}" in time`, {
    hint: 'give it a "fallback", the branch "timeout", or "catch"',
  })

export const nothingCame = (node: string, event: string) =>
  svcError('EVENT_MISSED', `the event "${event}" did not come in time for the node "${node}"`, {
    hint: 'give the node the branch "timeout", or "catch"',
  })

export const loopEndless = (node: string, max: number) =>
  svcError('LOOP_EXHAUSTED', `the node "${node}" has run its body ${max} times, and "until" does not hold`, {
    details: { max },
    hint: 'raise "max", or say "at_max: end"',
  })

/** What a server answered that was not asked for: one that refuses the request will do so again, one that failed may not. */
export const statusUnexpected = (url: string, status: number, body: string, retryAfter: string | undefined) =>
  svcError(isFinal(status) ? 'HTTP_REFUSED' : 'HTTP_FAILED', `${url} answered with the status ${status}`, {
    details: {
      url,
      status,
      ...(body === '' ? {} : { body: clip(body, 1_000) }),
      ...(retryAfter === undefined ? {} : { retry_after: clip(retryAfter) }),
    },
    hint: 'list statuses that are fine in "statuses"',
  })

const NOT_FINAL: ReadonlySet<number> = new Set([408, 425, 429])
const isFinal = (status: number) => status < 500 && !NOT_FINAL.has(status)

export const noJson = (url: string, error: unknown) =>
  svcError('HTTP_BODY_INVALID', `${url} answered with what is no JSON: ${clip(messageOf(error))}`, { hint: 'say "parse: text"' })
