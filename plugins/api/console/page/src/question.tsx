import { type FormEvent, useState } from 'react'
import { messageOf } from './api.ts'
import { Expires } from './expires.tsx'
import { Json } from './message.tsx'
import { isRecord, SchemaForm, useEditedValue } from './schema-input.tsx'
import { ErrorLog } from './states.tsx'
import { type Ask, answer, type Turn } from './turn.ts'
import { visible } from './visible-text.ts'

/** The question of a tool of the open turn. */
export const Question = ({ turn, ask, input }: { readonly turn: Turn; readonly ask: Ask; readonly input: unknown }) => (
  <AskForm
    tool={ask.tool}
    question={ask.question}
    form={ask.form}
    input={input}
    expires={ask.expires_at}
    onReply={reply => answer(turn, ask, reply)}
  />
)

export interface Reply {
  readonly allow: boolean
  readonly content?: Record<string, unknown>
}

const LONGEST_QUESTION = 5_000

interface AskFormProps {
  readonly tool: string
  readonly question: string
  /** What the tool wants to know: a schema, or the address of a page. Without it, the question is whether the tool may run. */
  readonly form: Record<string, unknown> | null | undefined
  /** The arguments of the tool. */
  readonly input: unknown
  /** When the question expires. */
  readonly expires: string | undefined
  readonly onReply: (reply: Reply) => Promise<unknown>
}

/** The question of a tool, with its arguments: the reader decides what runs. */
export function AskForm({ tool, question, form, input, expires, onReply }: AskFormProps) {
  const [problem, setProblem] = useState<unknown>()
  const [isSent, setSent] = useState(false)
  const schema = isRecord(form?.schema) ? form.schema : undefined
  const edited = useEditedValue({})
  const content = isRecord(edited.value) ? edited.value : {}
  const reply = async (given: Reply) => {
    setSent(true)
    setProblem(undefined)
    try {
      await onReply(given)
    } catch (error) {
      setProblem(error)
      setSent(false)
    }
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    void reply({ allow: true, ...(form ? { content: schema ? content : {} } : {}) })
  }
  return (
    <form className="ask" onSubmit={submit} aria-label={`Question of ${visible(tool)}`}>
      <p className="ask-question">{visible(question, LONGEST_QUESTION)}</p>
      {expires !== undefined && <Expires at={expires} />}
      {!form && <Json value={input} label={`Arguments of ${visible(tool)}`} />}
      {schema && <SchemaForm schema={schema} value={edited.value} onChange={edited.fromForm} />}
      {typeof form?.url === 'string' && /^https?:/.test(form.url) && (
        <p>
          <a href={form.url} target="_blank" rel="noreferrer noopener">
            {form.url}
          </a>
        </p>
      )}
      {problem !== undefined && (
        <p className="note note-bad" role="alert">
          {messageOf(problem)} <ErrorLog error={problem} />
        </p>
      )}
      <div className="row">
        <button type="submit" className="button button-primary" disabled={isSent}>
          {form ? 'Send' : 'Allow'}
        </button>
        <button type="button" className="button" disabled={isSent} onClick={() => void reply({ allow: false })}>
          {form ? 'Decline' : 'Deny'}
        </button>
      </div>
    </form>
  )
}
