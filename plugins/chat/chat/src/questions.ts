import { type CallContext, type Events, withTimeout } from '@svc/core'
import {
  type ChatQuestion,
  type Json,
  type PeerMessage,
  type Peers,
  QuestionAsked,
  QuestionClosed,
  type ToolAnswer,
} from '@svc/core/contracts'
import { boundedJson, definedOf } from '@svc/plugin-kit'
import { invalid } from './errors.ts'

/** The answer of a user to a question. */
export interface PersonAnswer {
  readonly allow: boolean
  readonly reason?: string
  /** The content of a form. */
  readonly content?: ToolAnswer['content']
  /** The answers to input requests of a tool. */
  readonly answers?: ToolAnswer['answers']
}

/** Returns what is wrong with an answer; empty if it fits the question. */
export type AnswerCheck = (answer: PersonAnswer) => readonly string[]

/** What a question is about. */
type Asked = Pick<ChatQuestion, 'conversationId' | 'tool' | 'arguments' | 'question' | 'form' | 'requests' | 'turnId'>

interface AskOptions {
  readonly check?: AnswerCheck | undefined
  /** Runs before an answer counts. If it throws, the question fails with that error and the answer does not count. */
  readonly taken?: (() => Promise<void>) | undefined
}

interface OpenQuestion {
  readonly settle: (said: PersonAnswer) => void
  readonly fail: (error: unknown) => void
  readonly options: AskOptions
  readonly shown: ChatQuestion
}

/** Questions to the user who reads a stream. The answer can arrive at another worker. */
export interface Questions {
  /** Waits for the answer; `undefined` after the time limit. Throws the abort reason of `ctx.signal`. */
  ask(callId: string, waitMs: number, about: Asked, ctx: CallContext, options?: AskOptions): Promise<PersonAnswer | undefined>
  /** Open questions of all running workers that the caller can see. */
  open(ctx: CallContext): Promise<readonly ChatQuestion[]>
  /**
   * Passes the answer to the waiting turn. Resolves to false if no running turn of this principal waits for it. Throws INVALID_VALUE
   * if it does not fit.
   */
  answer(answer: ToolAnswer, ctx: CallContext): Promise<boolean>
  /** For a tap of `Peers.hooks.message`. */
  readonly onPeerMessage: (news: PeerMessage, ctx: CallContext) => Promise<void>
}

const ANSWER = 'chat.answer'
const LIST = 'chat.questions'
const LISTED = 'chat.questions.open'
const TAKEN = 'chat.answer.taken'
const REASON = 1_000

/** An answer on its way to another worker. */
interface Posted {
  readonly posted: string
  readonly key: string
  readonly said: PersonAnswer
}

/** A worker has taken an answer, or has found it wrong. */
interface Taken {
  readonly posted: string
  readonly problems: readonly string[]
}

// only this file, in this process or in another worker, sends messages under these topics
const messageAs = <T>(message: Json) => message as unknown as T

/** The key contains the principal: only the principal of the turn can answer. */
const keyOf = (requestId: string, callId: string, { principal }: CallContext) => JSON.stringify([principal.id, requestId, callId])

/** What the user says in an answer. */
export const saidIn = ({ allow, reason, content, answers }: ToolAnswer): PersonAnswer => ({
  allow,
  ...definedOf({ reason: reason?.slice(0, REASON), content, answers }),
})

/** A broadcast returns no result. So the worker that takes the answer broadcasts TAKEN before its handler returns. */
export function createQuestions(peers: Peers | undefined, events: Pick<Events, 'publish'>): Questions {
  const open = new Map<string, OpenQuestion>()
  const lists = createLists(peers, () => [...open.values()].slice(0, MAX_LISTED).map(({ shown }) => shown))
  const posts = createPosts(peers)
  /** Returns the problems of an answer; undefined if no question of this worker waits for it. */
  const take = async (key: string, said: PersonAnswer): Promise<readonly string[] | undefined> => {
    const question = open.get(key)
    if (!question) return undefined
    const problems = question.options.check?.(said) ?? []
    if (problems.length > 0) return problems
    open.delete(key)
    try {
      await question.options.taken?.()
    } catch (error) {
      question.fail(error)
      throw error
    }
    question.settle(said)
    return []
  }
  return {
    async ask(callId, waitMs, about, ctx, options = {}) {
      const key = keyOf(ctx.requestId, callId, ctx)
      if (open.has(key)) return { allow: false, reason: 'another question with the same id is open' }
      const { promise, resolve, reject } = Promise.withResolvers<PersonAnswer>()
      const [since, owner] = [Date.now(), ctx.principal.id]
      const times = { since, until: since + waitMs }
      const shown = { ...about, arguments: shownArguments(about.arguments), requestId: ctx.requestId, callId, owner, ...times }
      open.set(key, { settle: resolve, fail: reject, options, shown })
      const named = { conversation_id: about.conversationId, tool: about.tool, call_id: callId }
      void events.publish(QuestionAsked, named, ctx)
      try {
        return await withTimeout(waitMs, () => promise, { signal: ctx.signal, late: () => NO_ANSWER })
      } catch (error) {
        if (error !== NO_ANSWER) throw error
        // an answer that is being taken came in time
        return open.get(key)?.settle === resolve ? undefined : await promise
      } finally {
        if (open.get(key)?.settle === resolve) open.delete(key)
        void events.publish(QuestionClosed, named, ctx)
      }
    },
    async answer(answer, ctx) {
      const key = keyOf(answer.requestId, answer.callId, ctx)
      const said = saidIn(answer)
      const problems = (await take(key, said)) ?? (await posts.send(key, said, ctx))
      if (problems === undefined) return false
      if (problems.length > 0) throw invalid('content', problems.join('; '))
      return true
    },
    open: ctx => lists.read(ctx),
    async onPeerMessage({ topic, message }, ctx) {
      await lists.onPeerMessage({ topic, message }, ctx)
      if (topic === TAKEN) posts.taken(messageAs<Taken>(message))
      if (topic !== ANSWER) return
      const { posted, key, said } = messageAs<Posted>(message)
      const problems = await take(key, said)
      if (problems) await peers?.broadcast(TAKEN, { posted, problems }, ctx)
    },
  }
}

/** Answers on their way to other workers, with the problems that one of them has found. */
function createPosts(peers: Peers | undefined) {
  const open = new Map<string, readonly string[] | undefined>()
  return {
    /** Returns the problems of an answer; undefined if no worker has such a question. */
    async send(key: string, said: PersonAnswer, ctx: CallContext): Promise<readonly string[] | undefined> {
      const posted = crypto.randomUUID()
      open.set(posted, undefined)
      try {
        await peers?.broadcast(ANSWER, { posted, key, said: said as unknown as Json }, ctx)
        return open.get(posted)
      } finally {
        open.delete(posted)
      }
    },
    taken({ posted, problems }: Taken): void {
      if (open.has(posted)) open.set(posted, problems)
    },
  }
}

/** Lists the questions of all workers. Each broadcasts its own before its handler returns. */
function createLists(peers: Peers | undefined, own: () => ChatQuestion[]) {
  const reading = new Map<string, ChatQuestion[]>()
  const gather = async (among: Peers, ctx: CallContext) => {
    const asked = crypto.randomUUID()
    const found: ChatQuestion[] = []
    reading.set(asked, found)
    try {
      await among.broadcast(LIST, asked, ctx)
      return found
    } finally {
      reading.delete(asked)
    }
  }
  return {
    async read(ctx: CallContext): Promise<readonly ChatQuestion[]> {
      const all = peers ? await gather(peers, ctx) : own()
      const { id, scopes } = ctx.principal
      const seesAll = scopes.includes('admin') || scopes.includes('*')
      return all.filter(({ owner }) => seesAll || owner === id)
    },
    async onPeerMessage({ topic, message }: PeerMessage, ctx: CallContext): Promise<void> {
      const questions = topic === LIST ? own() : []
      if (questions.length > 0) await peers?.broadcast(LISTED, { asked: message, questions: questions as unknown as Json }, ctx)
      if (topic !== LISTED) return
      // only this file sends these messages
      const listed = message as unknown as { readonly asked: string; readonly questions: ChatQuestion[] }
      reading.get(listed.asked)?.push(...listed.questions)
    },
  }
}

/** Limits of the list of a worker. */
const MAX_LISTED = 200
const MAX_ARGUMENTS = 10_000

export const shownArguments = (args: Asked['arguments']): Asked['arguments'] =>
  boundedJson(args, MAX_ARGUMENTS) === undefined ? { '…': `left out: more than ${MAX_ARGUMENTS} characters` } : args

const NO_ANSWER = new Error('no answer in time')
