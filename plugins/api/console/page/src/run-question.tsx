import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { Schemas } from '@svc/client'
import type { FormEvent, ReactNode } from 'react'
import { client } from './api.ts'
import { SchemaInput, useEditedValue } from './schema-input.tsx'
import { Failure, Time } from './states.tsx'
import { visible } from './visible-text.ts'

const LONGEST_MESSAGE = 5_000

type Asked = Omit<Schemas['WorkflowQuestion'], 'choices' | 'schema'> & {
  readonly choices?: readonly string[] | null
  readonly schema?: unknown
}

interface RunQuestionProps {
  readonly run: string
  readonly step: string
  readonly question: Asked
  readonly until: string | null
  readonly onAnswered?: () => void
}

/** The question of a step, as a form. Its answer lets the run go on. */
export function RunQuestion({ run, step, question, until, onAnswered }: RunQuestionProps) {
  const queries = useQueryClient()
  const reply = useMutation({
    mutationFn: (value: unknown) => client.runs.answer(run, { step, value }),
    async onSuccess() {
      onAnswered?.()
      await Promise.all([
        queries.invalidateQueries({ queryKey: ['run', run] }),
        queries.invalidateQueries({ queryKey: ['questions'] }),
      ])
    },
  })
  const isOff = reply.isPending || reply.isSuccess
  return (
    <div className="ask" role="group" aria-label={`Question of ${step}`}>
      <p className="ask-question">{visible(question.message, LONGEST_MESSAGE)}</p>
      {until !== null && (
        <p className="muted small">
          The time for an answer ends <Time at={until} />.
        </p>
      )}
      {question.kind === 'approval' && <Approval isOff={isOff} onAnswer={reply.mutate} />}
      {question.kind === 'choice' && <Choice choices={question.choices ?? []} isOff={isOff} onAnswer={reply.mutate} />}
      {question.kind === 'input' && <Input schema={question.schema} isOff={isOff} onAnswer={reply.mutate} />}
      {reply.error && <Failure error={reply.error} />}
    </div>
  )
}

interface AnswerProps {
  readonly isOff: boolean
  readonly onAnswer: (value: unknown) => void
}

const Approval = ({ isOff, onAnswer }: AnswerProps) => (
  <div className="row">
    <button type="button" className="button button-primary" disabled={isOff} onClick={() => onAnswer(true)}>
      Approve
    </button>
    <button type="button" className="button" disabled={isOff} onClick={() => onAnswer(false)}>
      Reject
    </button>
  </div>
)

const Choice = ({ choices, isOff, onAnswer }: AnswerProps & { readonly choices: readonly string[] }) => (
  <div className="row">
    {choices.map(choice => (
      <button key={choice} type="button" className="button" disabled={isOff} onClick={() => onAnswer(choice)}>
        {choice}
      </button>
    ))}
  </div>
)

/** The answer as the schema wants it. The server decides whether it is one. */
function Input({ schema, isOff, onAnswer }: AnswerProps & { readonly schema: unknown }): ReactNode {
  const edited = useEditedValue({})
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    onAnswer(edited.value)
  }
  return (
    // the server answers in its own words, and not the browser in a bubble
    <form className="stack" onSubmit={submit} noValidate>
      <SchemaInput schema={schema} label="Answer as JSON" edited={edited} />
      <div className="row">
        <button type="submit" className="button button-primary" disabled={isOff || edited.badText !== undefined}>
          Send
        </button>
      </div>
    </form>
  )
}
