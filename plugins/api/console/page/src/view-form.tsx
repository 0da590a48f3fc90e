import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import { Card } from './parts.tsx'
import { SchemaForm } from './schema-input.tsx'
import { Failure } from './states.tsx'
import { answerOf, type Part, type PartProps, requestOf } from './view-data.ts'

const NEVER_ENDS = new AbortController().signal

/** A form, whose values are the body of its request. The plugin's route checks them, and decides. */
export function ViewForm({ part, source, onChanged }: PartProps<Part<'form'>>) {
  const [value, setValue] = useState<unknown>({})
  const [round, setRound] = useState(0)
  const id = useId()
  const sending = useMutation({
    mutationFn: () => answerOf(requestOf({ request: part.request }, source, { body: value }), NEVER_ENDS),
    async onSuccess() {
      setValue({})
      setRound(before => before + 1)
      await onChanged()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!sending.isPending) sending.mutate()
  }
  return (
    <Card title={part.title}>
      <form className="stack view-form" aria-label={part.title} noValidate onSubmit={submit}>
        <SchemaForm
          key={round}
          schema={part.schema}
          value={value}
          onChange={setValue}
          idPrefix={`view${id}`}
          hasProblems={sending.isError}
        />
        {sending.error && <Failure error={sending.error} />}
        <div className="row">
          <button type="submit" className="button button-primary" disabled={sending.isPending}>
            {part.submit ?? 'Send'}
          </button>
          <span role="status" className="muted">
            {sending.isPending ? 'Sending …' : sending.isSuccess && 'Done'}
          </span>
        </div>
      </form>
    </Card>
  )
}
