import type { Schemas } from '@svc/client'
import { STATES } from '@svc/workflow-lang/states'
import type { Step } from './run-steps.ts'
import { Badge, type Tone } from './states.tsx'

type Run = Pick<Schemas['WorkflowStatus'], 'status' | 'paused_at' | 'failure_code' | 'waiting_for'>

/** The state of a run as a person says it: a run that waits for an answer is more than running. */
function stateOfRun({ status, paused_at: paused, failure_code: code, waiting_for: waiting = [] }: Run): readonly [Tone, string] {
  if (status === 'completed') return ['ok', 'completed']
  if (status === 'failed') return code === 'CANCELLED' ? ['plain', 'cancelled'] : ['bad', 'failed']
  if (paused !== null) return ['warn', 'paused']
  if (waiting.some(({ question }) => question !== null)) return ['warn', 'asks']
  return waiting.length > 0 ? ['accent', 'waiting'] : ['accent', 'running']
}

export function RunBadge({ run }: { readonly run: Run }) {
  const [tone, word] = stateOfRun(run)
  return <Badge tone={tone}>{word}</Badge>
}

const TONES: Readonly<Record<Step['status'], Tone>> = {
  completed: 'ok',
  running: 'accent',
  waiting: 'warn',
  failed: 'bad',
  cancelled: 'plain',
}

export const StepBadge = ({ status }: { readonly status: Step['status'] }) => (
  <Badge tone={TONES[status]}>
    <span aria-hidden="true">{STATES[status].sign}</span> {STATES[status].word}
  </Badge>
)
