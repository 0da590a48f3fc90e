import { isTree } from '@svc/core'
import type { ToolDialog, ToolResult, ToolStep } from '@svc/core/contracts'
import type { PublishedTool } from './catalogue.ts'
import { failure } from './result.ts'

type Input = Extract<ToolStep, { readonly type: 'input' }>

/** Whether a person has allowed a call: then how the tool may go on asking; else what the caller is told instead. */
export type Consent = { readonly dialog: ToolDialog } | { readonly instead: ToolResult | Input }

const KEY = 'svc_consent'
/** Before the tool's own state, once the person has said yes. A caller that forges it could have forged the answer: the person is the caller's. */
const GIVEN = 'svc_consent;'

/** Asks for a tool that wants a person asked, through the caller. */
export function consentTo({ name, tool }: PublishedTool, dialog: ToolDialog): Consent {
  const { can, answers, state } = dialog
  if (!tool.asks) return { dialog }
  if (!can.includes('elicitation/create'))
    return { instead: failure('Not allowed: a person has to be asked first, and this caller can ask nobody.') }
  if (state?.startsWith(GIVEN)) return { dialog: { can, ...(answers && { answers }), ...stateOf(state.slice(GIVEN.length)) } }
  const answer = answers?.[KEY]
  if (answer === undefined) return { instead: question(name) }
  return isYes(answer) ? { dialog: { can } } : { instead: failure('Not allowed: the person who was asked said no.') }
}

/** What the tool asks for, so that the consent comes back with the answer. */
export const consented = (asked: Input): Input => ({ ...asked, state: GIVEN + (asked.state ?? '') })

const stateOf = (state: string) => (state === '' ? {} : { state })

const isYes = (answer: unknown) =>
  isTree(answer) && answer.action === 'accept' && isTree(answer.content) && answer.content.allow === true

const question = (name: string): Input => ({
  type: 'input',
  requests: {
    [KEY]: {
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: `May the tool "${name}" run?`,
        requestedSchema: {
          type: 'object',
          properties: { allow: { type: 'boolean', title: 'Let it run', default: false } },
          required: ['allow'],
        },
      },
    },
  },
})
