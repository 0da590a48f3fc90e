import type { CallContext } from '@svc/core'
import type { Json, PeerAnswer, WorkflowProblem, Workflows } from '@svc/core/contracts'

/** The topic under which a server checks workflows for commands. */
export const VALIDATE = 'workflows.validate'

/** A workflow to check: the text of a file, or a name. */
export interface ValidateQuestion {
  readonly source: string
  /** Absent: `source` is the name or path of a workflow. */
  readonly text?: string
}

/** A checked workflow, with its file if it has one. */
export interface Validated {
  readonly file?: string
  readonly problems: readonly WorkflowProblem[]
}

/** Checks a workflow with the nodes, tools and modes of this host. */
export async function validateHere(
  workflows: Workflows,
  { source, text }: ValidateQuestion,
  ctx: CallContext
): Promise<Validated> {
  if (text !== undefined) return { file: source, problems: await workflows.validate({ text, file: source }, ctx) }
  const { info } = await workflows.show(source, ctx)
  return { ...(info.file === undefined ? {} : { file: info.file }), problems: info.problems ?? [] }
}

/** Answers the questions of commands. */
export const createValidateAnswer = (workflows: Workflows): PeerAnswer => ({
  async *answer(question, ctx) {
    const { source, text } = Object(question) as { readonly [key: string]: unknown }
    const asked = { source: String(source), ...(typeof text === 'string' ? { text } : {}) }
    yield (await validateHere(workflows, asked, ctx)) as unknown as Json
  },
})
