import { createSupervisor, type Supervisor, type SupervisorEvent, type SupervisorOptions } from '@svc/runtime'
import { CONDITIONS } from '../../../../test/support/entry.ts'

/** What a web worker reports. */
export interface Report {
  readonly port: number
}
type Event = SupervisorEvent<Report>
const exec = new URL('./web-worker.ts', import.meta.url).pathname

/** A supervisor of web workers whose events can be waited for. */
export function supervise(env: Record<string, string> = {}, more: Partial<SupervisorOptions<Report>> = {}) {
  const events: Event[] = []
  const waiting = new Set<() => void>()
  const supervisor: Supervisor<Report> = createSupervisor<Report>({
    exec,
    execArgv: [...CONDITIONS],
    env,
    ...more,
    onEvent(event) {
      events.push(event)
      for (const look of waiting) look()
    },
  })
  const seen = <K extends Event['event']>(kind: K, times: number): Promise<Extract<Event, { event: K }>[]> =>
    new Promise(resolve => {
      const look = () => {
        const found = events.filter((event): event is Extract<Event, { event: K }> => event.event === kind)
        if (found.length < times) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  return { supervisor, events, seen }
}

/** What the worker that has its turn answers: its pid. */
export const textOf = async (port: number, path = '/') =>
  (await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } })).text()
