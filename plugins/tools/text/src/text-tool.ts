import type { BoundedWork } from '@svc/worker-pool'
import type { JsonSchema, CallContext } from '@svc/core'
import type { Json, Tool } from '@svc/core/contracts'
import { answerOf, toolOf } from '@svc/plugin-kit'
import type { TextWork } from './work.ts'

/** Runs the work of the tools in killable processes. */
export type Work = BoundedWork<TextWork>

/** Maximum length of a text argument. */
const LONGEST = 1_000_000

/** Schema of a text argument. */
export const textOf = (description: string) => ({ type: 'string', maxLength: LONGEST, description })

interface Described<A> {
  readonly description: string
  readonly parameters: JsonSchema
  readonly result: JsonSchema
  /** Returns the data, and the text for the model. */
  readonly work: (args: A, ctx: CallContext) => Promise<{ readonly data: Json; readonly text: string }>
}

/** Creates a tool without side effects. */
export const textTool = <A extends object>({ work, ...described }: Described<A>): Tool =>
  toolOf<A>({
    ...described,
    category: 'text',
    effects: [],
    async call(args, ctx) {
      const { data, text } = await work(args, ctx)
      return answerOf(text, data)
    },
  })
