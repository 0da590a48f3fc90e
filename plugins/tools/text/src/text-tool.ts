import type { BoundedWork } from '@svc/worker-pool'
import type { JsonSchema, CallContext } from '@svc/core'
import type { Json, Tool } from '@svc/core/contracts'
import { answerOf, toolOf } from '@svc/plugin-kit'
import type { TextWork } from './work.ts'

/** Where the tools have their work done. */
export type Work = BoundedWork<TextWork>

/** The most characters of a text that a call takes. */
const LONGEST = 1_000_000

/** The schema of a text that a call takes. */
export const textOf = (description: string) => ({ type: 'string', maxLength: LONGEST, description })

interface Described<A> {
  readonly description: string
  readonly parameters: JsonSchema
  readonly result: JsonSchema
  /** Answers the data, and the text that a model reads. */
  readonly work: (args: A, ctx: CallContext) => Promise<{ readonly data: Json; readonly text: string }>
}

/** A tool that turns text into text and does nothing to the world. */
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
