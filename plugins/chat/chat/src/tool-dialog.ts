import type { CallContext, JsonSchema } from '@svc/core'
import type { InputRequest, Json, Tool, ToolDialog, ToolResult, ToolStep, TurnEvent } from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import type { AnswerCheck, PersonAnswer } from './questions.ts'

type Arguments = Parameters<Tool['call']>[0]
type Progress = Extract<ToolStep, { readonly type: 'progress' }>
type Requests = Extract<ToolStep, { readonly type: 'input' }>['requests']
type Answers = NonNullable<ToolDialog['answers']>
type LastStep = Extract<ToolStep, { readonly type: 'input' | 'result' }>

/** Input requests of one call. A tool that asks for ever is stopped. */
const MOST_INPUTS = 10

/** The input that a tool waits for, with the answers so far. Its call has ended: it continues in another with all answers. */
export interface OpenDialog {
  readonly requests: Requests
  readonly answers: Answers
  readonly state?: string
}

interface DialogOptions<E> {
  readonly tool: Tool
  readonly args: Arguments
  readonly can: ToolDialog['can']
  /** The limit that the tool gets as the deadline of each call. */
  readonly timeoutMs?: number | undefined
  /** Starts the time limit of one call of the tool. The time in which it waits for input does not count. */
  readonly limited: () => <T>(work: () => Promise<T>) => Promise<T>
  /** Where the dialog continues. Absent: with the first call of the tool. */
  readonly waiting?: OpenDialog | undefined
  /** Gets the input that the tool requests. A refusal is an answer, too. */
  readonly answer: (open: OpenDialog) => AsyncGenerator<E, Answers>
  readonly progress?: (step: Progress) => E
}

/** Calls a tool, again with each input that it requests. A tool that ignores its signal does not hold the caller. */
export async function* runDialog<E>(options: DialogOptions<E>, ctx: CallContext): AsyncGenerator<E, ToolResult> {
  const { can, answer } = options
  let dialog: ToolDialog = { can }
  let open = options.waiting
  for (let inputs = 0; inputs <= MOST_INPUTS; inputs++) {
    if (!open) {
      const last = yield* callOnce(options, dialog, ctx)
      if (last.type === 'result') return last.result
      open = { requests: last.requests, answers: {}, ...(last.state === undefined ? {} : { state: last.state }) }
    }
    const { state } = open
    dialog = { can, answers: yield* answer(open), ...(state === undefined ? {} : { state }) }
    open = undefined
  }
  throw new TypeError(`the tool asked for input more than ${MOST_INPUTS} times`)
}

async function* callOnce<E>(
  { tool, args, timeoutMs, limited, progress }: DialogOptions<E>,
  dialog: ToolDialog,
  ctx: CallContext
): AsyncGenerator<E, LastStep> {
  const stop = new AbortController()
  const deadline = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs }
  const own = { ...ctx, ...deadline, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const within = limited()
  let steps: AsyncIterator<ToolStep> | undefined
  try {
    if (!tool.run) return { type: 'result', result: await within(() => tool.call(args, own)) }
    const running = (steps = tool.run(args, dialog, own)[Symbol.asyncIterator]())
    for (;;) {
      const { done, value: step } = await within(() => running.next())
      if (done) throw new TypeError('the tool ended without a result')
      if (step.type === 'result' || step.type === 'input') return step
      if (step.type === 'progress' && progress) yield progress(step)
    }
  } finally {
    stop.abort(new Error('the call has ended'))
    void steps?.return?.().catch(() => undefined)
  }
}

/** Asks a person; returns `undefined` without an answer in time. */
export type AskPerson = (args: Arguments, question: string, form?: FormQuestion) => Promise<PersonAnswer | undefined>

/** Gets the answers to the requests that have none, one after the other, each as a form that a person fills in. */
export async function answerByForms({ answers: before, ...open }: OpenDialog, args: Arguments, ask: AskPerson): Promise<Answers> {
  const answers: Record<string, Json | undefined> = { ...before }
  for (const [key, request] of Object.entries(open.requests))
    if (!Object.hasOwn(answers, key)) answers[key] = await answerByForm(request, args, { ...open, answers: { ...answers } }, ask)
  return answers
}

/** What is wrong with the answer to the form for which a dialog waits. */
export async function formProblems({ requests, answers }: OpenDialog, said: PersonAnswer): Promise<readonly string[]> {
  const asked = Object.entries(requests).find(([key]) => !Object.hasOwn(answers, key))
  return asked ? (await questionForm(asked[1].params ?? {})).check(said) : []
}

async function answerByForm(
  { method, params = {} }: InputRequest,
  args: Arguments,
  dialog: OpenDialog,
  ask: AskPerson
): Promise<Json> {
  if (method !== 'elicitation/create') throw new TypeError('the tool asks for something that svc does not offer')
  const { message } = params
  const form = { ...(await questionForm(params)), dialog }
  const answer = await ask(args, typeof message === 'string' ? message.slice(0, LONGEST_QUESTION) : '', form)
  if (!answer) return { action: 'cancel' }
  return answer.allow ? { action: 'accept', content: (answer.content ?? {}) as Json } : { action: 'decline' }
}

/** Characters of a question. */
const LONGEST_QUESTION = 2_000
/** Characters of the schema of a form, and of its answer, as JSON. */
const LONGEST_SCHEMA = 50_000
const LONGEST_ANSWER = 100_000
const MOST_PROBLEMS = 10

/** What a tool wants to know: as the reader sees it, and the check of the answer. */
interface QuestionForm {
  readonly shown: NonNullable<Extract<TurnEvent, { type: 'ask' }>['form']>
  readonly check: AnswerCheck
}

/** A form with the dialog that waits for it. */
interface FormQuestion extends QuestionForm {
  readonly dialog: OpenDialog
}

/** The form of an elicitation of MCP, whose parameters are untrusted. Throws TypeError for one that cannot be shown. */
async function questionForm({ mode, url, requestedSchema }: NonNullable<InputRequest['params']>): Promise<QuestionForm> {
  if (mode === 'url') return pageForm(url)
  if (typeof requestedSchema !== 'object' || requestedSchema === null || Array.isArray(requestedSchema))
    throw new TypeError('the tool asks for a form without a schema')
  if (JSON.stringify(requestedSchema).length > LONGEST_SCHEMA) throw new TypeError('the tool asks for a form that is too large')
  const schema = requestedSchema as JsonSchema
  const { check } = await toolSchema(schema, { once: true })
  return {
    shown: { schema },
    check({ allow, content = {} }) {
      if (!allow) return []
      if (JSON.stringify(content).length > LONGEST_ANSWER) return ['is too long']
      const problems = check(structuredClone(content), 'all')
      return problems
        .slice(0, MOST_PROBLEMS)
        .map(({ path, message }) => `${path ? `${path.slice(0, 200)} ` : ''}${message.slice(0, 500)}`)
    },
  }
}

/** A page that the user opens: only its address goes to the reader. */
function pageForm(url: unknown): QuestionForm {
  const page = typeof url === 'string' ? URL.parse(url) : null
  if (page?.protocol !== 'https:' || page.username !== '' || page.password !== '')
    throw new TypeError('the tool asks to open a page that does not use https')
  return { shown: { url: page.href }, check: () => [] }
}
