import { codeOf, messageOf, type SvcError } from '@svc/core'
import type { McpErrorClass, ToolResult } from '@svc/core/contracts'
import type { CallEnd } from './call.ts'
import { toolFailed, toolLate, toolUnknown, upstreamFailed } from './errors.ts'

type Details = Readonly<Record<string, unknown>>

/** Why a call did not come to a good end, as the API tells it: whoever runs the tool may be another server. */
export function failureOf(name: string, end: CallEnd): SvcError {
  if (end.type === 'input') return toolFailed(name, 'it needs an answer that cannot be given here', [])
  const { result, thrown } = end
  const details: Details = (thrown as { details?: Details } | undefined)?.details ?? {}
  const translate = TRANSLATED[codeOf(thrown) ?? '']
  return translate?.(name, thrown, details) ?? toolFailed(name, reasonOf(details) ?? textOf(result), result.content)
}

type Translate = (name: string, thrown: unknown, details: Details) => SvcError | undefined

const upstream: Translate = (_name, thrown, { server, retryable }) =>
  typeof server === 'string' ? upstreamFailed(messageOf(thrown), server, retryable === true) : undefined

const BY_CLASS: Readonly<Partial<Record<McpErrorClass, Translate>>> = {
  connection_refused: upstream,
  authentication_failed: upstream,
  protocol_error: upstream,
  cancelled: upstream,
  tool_not_found: name => toolUnknown(name),
  timeout: (name, thrown) => toolLate(name, messageOf(thrown)),
}

/** What tools throw whose end is not their own doing. */
const TRANSLATED: Readonly<Record<string, Translate>> = {
  TIMEOUT: (name, thrown) => toolLate(name, messageOf(thrown)),
  PROVIDER_ERROR: upstream,
  MCP_CALL_FAILED: (name, thrown, details) => BY_CLASS[details.class as McpErrorClass]?.(name, thrown, details),
  PLUGIN_GONE: (_name, thrown) => thrown as SvcError,
}

const LONGEST = 2_000

const reasonOf = ({ reason }: Details) => (typeof reason === 'string' ? reason.slice(0, LONGEST) : undefined)

/** What the tool says for people. */
const textOf = ({ content }: ToolResult) =>
  content
    .flatMap(part => (part.type === 'text' ? [part.text] : []))
    .join('\n')
    .slice(0, LONGEST) || 'the tool says that it failed'
