import { codeOf, messageOf, svcError } from '@svc/core'
import type { PublicError } from '@svc/core/contracts'

const clip = (text: string, most = 200) => (text.length > most ? `${text.slice(0, most)}…` : text)

/** A service of a node is missing. The node type stays registered, so that definitions can be read and drawn. */
export const missingService = (type: string, what: string, plugin: string) =>
  svcError('SERVICE_MISSING', `nodes of the type "${type}" need ${what}, and no loaded plugin provides it`, {
    hint: `Add "${plugin}" to "plugins"`,
  })

export const invalid = (field: string, reason: string, more: Readonly<Record<string, unknown>> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

/** The process exited while the node ran, and the node must not run twice. */
export const interrupted = (node: string, why: string) =>
  svcError('NODE_INTERRUPTED', `the process exited while it ran the node "${node}", and ${why}`, {
    hint: 'Check whether the node finished its work, and retry the run. If the node can safely run twice, set "repeatable: true"',
  })

export const noCallsLeft = (node: string) =>
  svcError('BUDGET_EXHAUSTED', `the budget allows no tool call for the node "${node}"`, { hint: 'Increase "budget"' })

/** Turns the error of a child into an error of the node. */
export const raised = ({ code, message, details }: PublicError) => svcError(code, message, { details })

export const toolUnknown = (tool: string) =>
  svcError('TOOL_UNKNOWN', `tool "${clip(tool)}" does not exist, or workflows cannot call it`, {
    details: { tool: clip(tool) },
    hint: 'Run `svc tools list` to see the tools',
  })

export const toolDenied = (tool: string) =>
  svcError('TOOL_DENIED', `the call of the tool "${tool}" was not approved`, { details: { tool } })

export const toolFailed = (tool: string, words: string, cause?: unknown) =>
  svcError('TOOL_EXECUTION_FAILED', `the tool "${tool}" failed: ${clip(words, 2_000)}`, {
    details: { tool, ...(codeOf(cause) === undefined ? {} : { code: codeOf(cause) }) },
    cause,
  })

export const rejected = (node: string) =>
  svcError('NOT_APPROVED', `the node "${node}" was rejected, and has no branch "rejected"`, {
    hint: 'Add the branch "rejected" or a "catch" to the node',
  })

export const unanswered = (node: string) =>
  svcError('NOT_ANSWERED', `the question of the node "${node}" was not answered in time`, {
    hint: 'Add a "fallback", the branch "timeout" or a "catch" to the node',
  })

export const nothingCame = (node: string, event: string) =>
  svcError('EVENT_MISSED', `the node "${node}" did not receive the event "${event}" in time`, {
    hint: 'Add the branch "timeout" or a "catch" to the node',
  })

export const loopEndless = (node: string, max: number) =>
  svcError('LOOP_EXHAUSTED', `the node "${node}" has run its body ${max} times, and "until" is still false`, {
    details: { max },
    hint: 'Increase "max", or set "at_max: end"',
  })

/** An unexpected HTTP status. HTTP_REFUSED is final, HTTP_FAILED can be retried. */
export const statusUnexpected = (url: string, status: number, body: string, retryAfter: string | undefined) =>
  svcError(isFinal(status) ? 'HTTP_REFUSED' : 'HTTP_FAILED', `${url} returned the status ${status}`, {
    details: {
      url,
      status,
      ...(body === '' ? {} : { body: clip(body, 1_000) }),
      ...(retryAfter === undefined ? {} : { retry_after: clip(retryAfter) }),
    },
    hint: 'Check the URL and the request. If the workflow can handle this status, add it to "statuses" of the node',
  })

const NOT_FINAL: ReadonlySet<number> = new Set([408, 425, 429])
const isFinal = (status: number) => status < 500 && !NOT_FINAL.has(status)

export const noJson = (url: string, error: unknown) =>
  svcError('HTTP_BODY_INVALID', `${url} did not return valid JSON: ${clip(messageOf(error))}`, { hint: 'Set "parse: text"' })
