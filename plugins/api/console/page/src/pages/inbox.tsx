import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Schemas } from '@svc/client'
import { type ReactNode, useEffect } from 'react'
import { Chips, useAddress } from '../address.tsx'
import { client } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, ListPage, Refresh, Search, useCursorList, useWhole } from '../list.tsx'
import { Facts } from '../parts.tsx'
import { AskForm, type Reply } from '../question.tsx'
import { inbox } from '../router.tsx'
import { RunQuestion } from '../run-question.tsx'
import { Badge, Empty, Time } from '../states.tsx'
import { visible } from '../visible-text.ts'

type OfRun = Schemas['RunQuestion']
type OfChat = Schemas['ChatQuestion']

/** A question for a person: of a step of a run, or of a tool of a chat. */
type Item =
  | { readonly kind: 'run'; readonly id: string; readonly title: string; readonly about: string; readonly question: OfRun }
  | { readonly kind: 'chat'; readonly id: string; readonly title: string; readonly about: string; readonly question: OfChat }

const KINDS = [
  [undefined, 'All'],
  ['run', 'Runs'],
  ['chat', 'Chats'],
] as const

const runItem = (question: OfRun): Item => ({
  kind: 'run',
  id: `${question.workflow_id} ${question.step}`,
  title: visible(question.message),
  about: visible(question.workflow),
  question,
})
const chatItem = (question: OfChat): Item => ({
  kind: 'chat',
  id: `${question.request_id} ${question.call_id}`,
  title: visible(question.question),
  about: visible(question.tool),
  question,
})

const isOfQuestions = ({ type }: { readonly type: string }) =>
  /^svc\.(run_(asked|answered|ended)|question_|turn_(completed|failed|cancelled))/.test(type)

/** All open questions that the caller can see. */
function useQuestions() {
  useFreshening({ key: ['questions'], isAbout: isOfQuestions, everyMs: 500 })
  const list = useCursorList({
    key: ['questions'],
    read: (from, signal) => client.get('/api/v1/workflows/questions', { query: { limit: 100, ...from }, signal }),
    itemsOf: page => [...page.chats.map(chatItem), ...page.questions.map(runItem)],
  })
  useWhole(list)
  return list
}

const matches = ({ title, about }: Item, text: string) => `${title} ${about}`.toLowerCase().includes(text.toLowerCase())

export function Inbox() {
  const { id, q = '', kind } = inbox.useSearch()
  const all = useQuestions()
  const items = all.items.filter(item => (kind === undefined || item.kind === kind) && matches(item, q))
  const count = all.items.length
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}Inbox · svc console`
  }, [count])
  const selected = items.find(item => item.id === id)
  return (
    <ListPage
      title="Inbox"
      actions={<Refresh list={all} />}
      filters={
        <>
          <Search label="Search questions" />
          <Chips label="Kinds of questions" name="kind" values={KINDS} />
        </>
      }
      list={{ ...all, items }}
      keyOf={item => item.id}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.id })}
      isSelected={item => item.id === id}
      empty={<Nothing isFiltered={count > 0} />}
      hasSelection={id !== undefined}
      detail={
        selected ? (
          <Detail key={selected.id} item={selected} next={items.find(item => item !== selected)?.id} />
        ) : (
          <NoSelection isGone={id !== undefined && !all.isPending && !all.error} />
        )
      }
    />
  )
}

const Nothing = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No question matches">
      <Link to="/inbox">Show all questions</Link>
    </Empty>
  ) : (
    <Empty title="Nothing waits for you">Questions of runs and chats appear here as they are asked.</Empty>
  )

const NoSelection = ({ isGone }: { readonly isGone: boolean }) =>
  isGone ? (
    <>
      <div className="bar only-narrow">
        <Back />
      </div>
      <Empty title="The question is closed">It was answered, or its time is over.</Empty>
    </>
  ) : (
    <Empty title="Select a question">Your answer lets the run or the chat go on.</Empty>
  )

function Entry({ item: { kind, title, about, question } }: { readonly item: Item }) {
  return (
    <>
      <span className="row spread">
        <span className="list-name clip grow">{title}</span>
        {kind === 'chat' && question.interrupted && <Badge tone="warn">interrupted</Badge>}
      </span>
      <span className="list-facts">
        <Time at={question.since} />
        <span>{kind}</span>
        <span className="clip">{about}</span>
      </span>
    </>
  )
}

interface DetailProps {
  readonly item: Item
  /** The question that is shown after this one. */
  readonly next: string | undefined
}

function Detail({ item, next }: DetailProps) {
  const [, change] = useAddress()
  const answered = () => change({ id: next })
  return (
    <>
      <div className="bar">
        <Back />
        <div className="grow">
          <h2 className="section-title clip">{item.about}</h2>
          <p className="muted small">
            asked <Time at={item.question.since} />
          </p>
        </div>
        {item.kind === 'run' ? (
          <Link className="button" to="/runs" search={{ id: item.question.workflow_id }}>
            Open the run
          </Link>
        ) : (
          item.question.conversation_id !== null && (
            <Link className="button" to="/conversations" search={{ id: item.question.conversation_id }}>
              Conversation
            </Link>
          )
        )}
      </div>
      <div className="reader-scroll pad">
        <div className="stack narrow">
          {item.kind === 'run' ? (
            <OfRun question={item.question} onAnswered={answered} />
          ) : (
            <OfChat question={item.question} onAnswered={answered} />
          )}
        </div>
      </div>
    </>
  )
}

function OfRun({ question, onAnswered }: { readonly question: OfRun; readonly onAnswered: () => void }): ReactNode {
  const { workflow_id: run, step, owner, until, ...asked } = question
  return (
    <>
      <RunQuestion run={run} step={step} question={asked} until={until} onAnswered={onAnswered} />
      <Facts
        facts={[
          ['Step', <code key="step">{step}</code>],
          [
            'Run',
            <code key="run" className="id">
              {run}
            </code>,
          ],
          ['Owner', owner],
        ]}
      />
    </>
  )
}

function OfChat({ question, onAnswered }: { readonly question: OfChat; readonly onAnswered: () => void }): ReactNode {
  const queries = useQueryClient()
  const reply = async (given: Reply) => {
    await sendReply(question, given)
    onAnswered()
    await queries.invalidateQueries({ queryKey: ['questions'] })
  }
  const { tool, owner, until, interrupted } = question
  return (
    <>
      {question.answerable ? (
        <AskForm
          tool={tool}
          question={question.question}
          form={formOf(question)}
          input={question.arguments}
          expires={until}
          onReply={reply}
        />
      ) : (
        <p className="note">
          {question.question} Only <code>{owner}</code> can answer.
        </p>
      )}
      {interrupted && <p className="note">The worker of this turn has ended. The answer continues the turn at another worker.</p>}
      <Facts
        facts={[
          ['Tool', <code key="tool">{tool}</code>],
          ['Owner', owner],
          ['Waits until', <Time key="until" at={until} />],
        ]}
      />
    </>
  )
}

interface InputRequest {
  readonly method?: string
  readonly params?: { readonly message?: string; readonly requestedSchema?: Record<string, unknown> }
}

/** The form of a turn; of a call outside of a turn, that of its only request. */
function formOf({ form, requests }: OfChat): Record<string, unknown> | null {
  if (form !== null || requests === null) return form
  const [first] = Object.values(requests) as InputRequest[]
  return first?.params?.requestedSchema ? { schema: first.params.requestedSchema } : null
}

function sendReply(question: OfChat, { allow, content }: Reply): Promise<unknown> {
  const { request_id, call_id, tool, requests } = question
  if (question.answer_url === '/api/v1/chat/answer')
    return client.chat.answer({ request_id, call_id, allow, ...(content ? { content } : {}) })
  const keys = Object.keys(requests ?? {})
  const action = allow ? { action: 'accept', content: content ?? {} } : { action: 'decline' }
  return client.post('/api/v1/tools/{name}/answer', {
    path: { name: tool },
    body: {
      request_id,
      question_id: call_id,
      allow,
      ...(keys.length > 0 ? { answers: Object.fromEntries(keys.map(key => [key, action])) } : {}),
    },
  })
}
