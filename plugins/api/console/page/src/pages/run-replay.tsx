import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client, textIn } from '../api.ts'
import { JsonField, jsonIn } from '../json-field.tsx'
import { Buttons, Panel } from '../parts.tsx'
import { Failure } from '../states.tsx'
import type { Run } from './run-parts.tsx'

interface ReplayProps {
  readonly run: Run
  /** The node to begin with. */
  readonly from?: string
  readonly onStarted?: (run: { readonly workflow_id: string }) => Promise<void>
}

/** Repeats an ended run from a node: the recorded results of the nodes before it are reused. */
export function Replay({ run, from, onStarted }: ReplayProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        {from === undefined ? 'Replay' : 'Retry from here'}
      </button>
      {isOpen && <ReplayPanel run={run} from={from} onStarted={onStarted} onClose={() => setOpen(false)} />}
    </>
  )
}

type PanelProps = { readonly [name in keyof ReplayProps]: ReplayProps[name] | undefined } & {
  readonly run: Run
  readonly onClose: () => void
}

function ReplayPanel({ run, from = '', onStarted, onClose }: PanelProps) {
  const navigate = useNavigate()
  const replay = useMutation({
    mutationFn: (data: FormData) => {
      const node = textIn(data, 'from')
      const input = jsonIn(data, 'input') as Record<string, unknown>
      return client.runs.replay(
        run.workflow_id,
        {
          definition: data.has('current') ? 'current' : 'same',
          ...(node === '' ? {} : { from: node }),
          ...(JSON.stringify(input) === JSON.stringify(run.input) ? {} : { input }),
        },
        { waitSeconds: 0 }
      )
    },
    async onSuccess(started) {
      onClose()
      await (onStarted ? onStarted(started) : navigate({ to: '/runs', search: { id: started.workflow_id } }))
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    replay.mutate(new FormData(event.currentTarget))
  }
  return (
    <Panel title={from === '' ? 'Replay the run' : `Retry from ${from}`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="muted small">
          A new run begins. What the nodes before it have returned is taken from this run; they do not run again.
        </p>
        <label className="field">
          <span>From node</span>
          <input className="input" name="from" defaultValue={from} placeholder="The first node" spellCheck={false} />
        </label>
        <JsonField name="input" label="Input" value={run.input} />
        <label className="check">
          <input type="checkbox" name="current" />
          <span>Use the current definition instead of that of the run</span>
        </label>
        {replay.error && <Failure error={replay.error} />}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={replay.isPending}>
            Start
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}
