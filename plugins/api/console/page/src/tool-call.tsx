import type { Schemas } from '@svc/client'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { callResultOf, followCall, Outcome, type Running } from './call-outcome.tsx'
import { isRecord, JsonText, SuspendingForm, useEditedValue } from './schema-input.tsx'
import { Loading } from './states.tsx'

const ToolResult = lazy(() => import('./tool-result.tsx'))

/** Calls a tool, and follows it. Leaving the page, or `stop`, ends the call. */
function useCall(tool: string) {
  const [running, setRunning] = useState<Running>()
  const ending = useRef<AbortController>(undefined)
  useEffect(() => () => ending.current?.abort(), [])
  const call = (args: Record<string, unknown>) => {
    ending.current?.abort()
    const own = new AbortController()
    ending.current = own
    void followCall(tool, args, own.signal, next => ending.current === own && setRunning(next))
  }
  return { running, call, stop: () => ending.current?.abort() }
}

const problemOf = (value: unknown) => (isRecord(value) ? undefined : 'The arguments are a JSON object: { … }')

/** The arguments as a form and as JSON: each shows what the other says. The server decides whether they are right. */
export function Call({ tool }: { readonly tool: Schemas['ToolDetail'] }) {
  const edited = useEditedValue({}, problemOf)
  const { running, call, stop } = useCall(tool.name)
  const [isTouched, setTouched] = useState(false)
  const isRunning = running?.state === 'running'
  return (
    <div className="pane">
      {!tool.callable && <p className="note">The mode of the server does not allow this tool outside of a turn.</p>}
      <Suspense fallback={<Loading rows={6} />}>
        <div className="beside" onInput={() => setTouched(true)}>
          <section aria-label="Arguments as a form" className="stack">
            <SuspendingForm
              schema={tool.input_schema}
              value={edited.value}
              onChange={edited.fromForm}
              hasProblems={isTouched || running !== undefined}
            />
          </section>
          <JsonText label="Arguments as JSON" edited={edited} schema={tool.input_schema} />
        </div>
        <div className="row">
          <button
            type="button"
            className="button button-primary"
            disabled={isRunning || edited.badText !== undefined || !tool.callable}
            onClick={() => call(isRecord(edited.value) ? edited.value : {})}
          >
            {isRunning ? 'Running …' : 'Call the tool'}
          </button>
          {isRunning && (
            <button type="button" className="button" onClick={stop}>
              Stop
            </button>
          )}
        </div>
      </Suspense>
      {running && (
        <Outcome
          running={running}
          shown={(result, text) => (
            <Suspense fallback={<Loading rows={4} />}>
              <ToolResult
                key={result.call_id}
                tool={tool.name}
                input={running.input}
                result={callResultOf(result)}
                text={text}
                isOpen
              />
            </Suspense>
          )}
        />
      )}
    </div>
  )
}
