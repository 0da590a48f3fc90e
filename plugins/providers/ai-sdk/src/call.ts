import type { Use } from '@svc/core'
import type { ModelRequest, ToolSpec } from '@svc/core/contracts'
import { toPrompt } from './prompt.ts'
import type { CallOptions, FunctionTool, Metadata, ToolChoice, Version } from './sdk.ts'

/** What a call needs besides the request. */
export interface CallParts {
  readonly version: Version
  /** Name of the entry: which messages are its own. */
  readonly provider: string
  /** Options for each call, by the provider's name in the SDK. */
  readonly providerOptions?: Metadata | undefined
  readonly signal: AbortSignal
}

/** A request as the options of `doStream`. */
export function toCallOptions(
  request: ModelRequest,
  parts: CallParts,
  use: Pick<Use, 'requestId' | 'trace' | 'traceState'>
): CallOptions {
  const { temperature, maxTokens, tools = [], toolChoice, responseSchema } = request
  return {
    prompt: toPrompt(request.messages, parts.version, parts.provider),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool), toolChoice: toChoice(toolChoice) }),
    ...(responseSchema === undefined ? {} : { responseFormat: { type: 'json', schema: responseSchema, name: 'reply' } }),
    ...(parts.providerOptions === undefined ? {} : { providerOptions: parts.providerOptions }),
    headers: {
      'x-request-id': use.requestId,
      ...(use.trace === undefined ? {} : { traceparent: use.trace }),
      ...(use.traceState === undefined ? {} : { tracestate: use.traceState }),
    },
    abortSignal: parts.signal,
  }
}

const toTool = ({ name, description, parameters }: ToolSpec): FunctionTool => ({
  type: 'function',
  name,
  description,
  inputSchema: parameters,
})

const toChoice = (choice: ModelRequest['toolChoice'] = 'auto'): ToolChoice =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool }
