import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { FormEvent } from 'react'
import { client } from '../api.ts'
import { Buttons, Panel } from '../parts.tsx'
import { isRecord, SchemaInput, useEditedValue } from '../schema-input.tsx'
import { Failure, Loading } from '../states.tsx'

interface StartRunProps {
  readonly name: string
  readonly onClose: () => void
}

/** Starts a run with the input that its workflow asks for, and opens it. */
export function StartRun({ name, onClose }: StartRunProps) {
  const navigate = useNavigate()
  const edited = useEditedValue({}, value => (isRecord(value) ? undefined : 'The input is a JSON object: { … }'))
  const read = useQuery({
    queryKey: ['workflows', name, 'definition'],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/definition', { query: { workflow: name }, signal }),
  })
  const schema = read.data?.definition.inputs
  const start = useMutation({
    mutationFn: (input: Record<string, unknown>) => client.runs.start({ workflow: name, input }, { waitSeconds: 0 }),
    async onSuccess({ workflow_id: id }) {
      onClose()
      await navigate({ to: '/runs', search: { id } })
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    start.mutate(isRecord(edited.value) ? edited.value : {})
  }
  return (
    <Panel title={`Start ${name}`} onClose={onClose}>
      {read.error && <Failure error={read.error} onRetry={() => void read.refetch()} />}
      {read.isPending && <Loading rows={3} />}
      {read.data && (
        <form className="stack" onSubmit={submit}>
          <SchemaInput schema={schema} label="Input as JSON" edited={edited} />
          {start.error && <Failure error={start.error} />}
          <Buttons onClose={onClose}>
            <button type="submit" className="button button-primary" disabled={start.isPending || edited.badText !== undefined}>
              Start
            </button>
          </Buttons>
        </form>
      )}
    </Panel>
  )
}
