import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../api.ts'
import { JsonField, jsonIn } from '../json-field.tsx'
import { Buttons, Panel } from '../parts.tsx'
import { isFlat, SchemaFields, valuesOf } from '../question.tsx'
import { Failure, Loading } from '../states.tsx'

interface StartRunProps {
  readonly name: string
  readonly onClose: () => void
}

/** Starts a run with the input that its workflow asks for, and opens it. */
export function StartRun({ name, onClose }: StartRunProps) {
  const navigate = useNavigate()
  const [isJson, setJson] = useState(false)
  const read = useQuery({
    queryKey: ['workflows', name, 'definition'],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/definition', { query: { workflow: name }, signal }),
  })
  const schema = read.data?.definition.inputs
  const hasForm = isFlat(schema) && Object.keys(schema.properties ?? {}).length > 0
  const start = useMutation({
    mutationFn: (input: Record<string, unknown>) => client.runs.start({ workflow: name, input }, { waitSeconds: 0 }),
    async onSuccess({ workflow_id: id }) {
      onClose()
      await navigate({ to: '/runs', search: { id } })
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    start.mutate(hasForm && !isJson ? valuesOf(schema, data) : ((jsonIn(data, 'input') ?? {}) as Record<string, unknown>))
  }
  return (
    <Panel title={`Start ${name}`} onClose={onClose}>
      {read.error && <Failure error={read.error} onRetry={() => void read.refetch()} />}
      {read.isPending && <Loading rows={3} />}
      {read.data && (
        <form className="stack" onSubmit={submit}>
          {hasForm && !isJson ? <SchemaFields schema={schema} /> : <JsonField name="input" label="Input as JSON" value={{}} />}
          {start.error && <Failure error={start.error} />}
          <Buttons onClose={onClose}>
            <button type="submit" className="button button-primary" disabled={start.isPending}>
              Start
            </button>
            {hasForm && (
              <button type="button" className="button button-quiet" onClick={() => setJson(!isJson)}>
                {isJson ? 'As a form' : 'As JSON'}
              </button>
            )}
          </Buttons>
        </form>
      )}
    </Panel>
  )
}
