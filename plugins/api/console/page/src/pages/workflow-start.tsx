import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { FormEvent } from 'react'
import { client } from '../api.ts'
import { Buttons, Panel } from '../parts.tsx'
import { type EditedValue, isRecord, SchemaInput, useEditedValue } from '../schema-input.tsx'
import { Failure, Loading } from '../states.tsx'

interface StartRunProps {
  readonly name: string
  readonly onClose: () => void
}

/** Starts a run with the input that its workflow asks for, and opens it. */
export function StartRun({ name, onClose }: StartRunProps) {
  const navigate = useNavigate()
  const edited = useEditedValue({}, value => (isRecord(value) ? undefined : 'The input is a JSON object: { … }'))
  const changed = useEditedValue({}, value => (isRecord(value) ? undefined : 'The parameters are a JSON object: { … }'))
  const read = useQuery({
    queryKey: ['workflows', name, 'definition'],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/definition', { query: { workflow: name }, signal }),
  })
  const schema = read.data?.definition.inputs
  const parameters = parametersSchema(read.data?.definition.parameters)
  const start = useMutation({
    mutationFn: () => client.runs.start({ workflow: name, ...valuesOf(edited, changed) }, { waitSeconds: 0 }),
    async onSuccess({ workflow_id: id }) {
      onClose()
      await navigate({ to: '/runs', search: { id } })
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    start.mutate()
  }
  const isBad = edited.badText !== undefined || changed.badText !== undefined
  return (
    <Panel title={`Start ${name}`} onClose={onClose}>
      {read.error && <Failure error={read.error} onRetry={() => void read.refetch()} />}
      {read.isPending && <Loading rows={3} />}
      {read.data && (
        <form className="stack" onSubmit={submit}>
          <SchemaInput schema={schema} label="Input as JSON" edited={edited} />
          {parameters && (
            <>
              <h3 className="section-title">Parameters</h3>
              <SchemaInput schema={parameters} label="Parameters as JSON" edited={changed} idPrefix="parameters" />
            </>
          )}
          {start.error && <Failure error={start.error} />}
          <Buttons onClose={onClose}>
            <button type="submit" className="button button-primary" disabled={start.isPending || isBad}>
              Start
            </button>
          </Buttons>
        </form>
      )}
    </Panel>
  )
}

const valuesOf = ({ value: input }: EditedValue, { value: parameters }: EditedValue) => ({
  input: isRecord(input) ? input : {},
  ...(isRecord(parameters) && Object.keys(parameters).length > 0 ? { parameters } : {}),
})

/** The schema of all parameters, if the workflow has any. */
function parametersSchema(parameters: unknown): object | undefined {
  if (!isRecord(parameters) || Object.keys(parameters).length === 0) return undefined
  const required = Object.keys(parameters).filter(name => !isRecord(parameters[name]) || !('default' in parameters[name]))
  return { type: 'object', properties: parameters, required, additionalProperties: false }
}
