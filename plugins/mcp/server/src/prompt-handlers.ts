import type { GetPromptResult, ListPromptsResult } from '@modelcontextprotocol/server'
import { codeOf, type SlotView, type Use } from '@svc/core'
import type { Prompt, PromptAnswer } from '@svc/core/contracts'
import { dialogOf } from './dialog.ts'
import type { Published } from './published.ts'
import { exchangeOf, type Sdk, type Server } from './sdk.ts'
import { inputRequired } from './tool-handlers.ts'
import { wordsOf } from './words.ts'

/** `prompts/list` and `prompts/get`. */
export function prompting(server: Server, sdk: Sdk, prompts: SlotView<Prompt>, { log }: Published, own: Use | undefined): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  const invalid = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, message)
  server.setRequestHandler(
    'prompts/list',
    (): ListPromptsResult => ({
      prompts: prompts
        .entries()
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(record),
    })
  )
  server.setRequestHandler('prompts/get', async ({ params }, context) => {
    const { name, arguments: args = {} } = params
    const prompt = prompts.get(name)
    if (!prompt) throw invalid(`Unknown prompt: ${name.slice(0, 100)}`)
    const missing = (prompt.arguments ?? []).filter(one => one.required && args[one.name] === undefined)
    if (missing.length > 0) throw invalid(`Missing arguments: ${missing.map(one => one.name).join(', ')}`)
    const use = { ...exchangeOf(context, own).use, signal: context.mcpReq.signal }
    try {
      const answer = await prompt.get(args, dialogOf(server, context), use)
      return isAsking(answer) ? inputRequired(answer) : (answer as GetPromptResult)
    } catch (error) {
      use.signal.throwIfAborted()
      const words = wordsOf(error, 'The prompt could not be made.')
      if (codeOf(error) === 'INPUT_STATE_INVALID') throw invalid(words)
      log.debug({ err: error, prompt: name, request_id: use.requestId }, 'a prompt failed')
      throw new ProtocolError(ProtocolErrorCode.InternalError, words)
    }
  })
}

type Asking = Extract<PromptAnswer, { readonly requests: unknown }>
const isAsking = (answer: PromptAnswer): answer is Asking => 'requests' in answer

function record([name, { title, description, arguments: args }]: [string, Prompt]): ListPromptsResult['prompts'][number] {
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(args === undefined ? {} : { arguments: args.map(one => ({ ...one })) }),
  }
}
