import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createClient, type OpenStream } from './support/client.ts'
import type { SentEvent } from './support/events.ts'
import { inNewHome, startService } from './support/service.ts'

const RUNS = fileURLToPath(new URL('./support/runs.ts', import.meta.url))
const WATCHERS = 200
const PATH = '/api/v1/workflows'

const fresh = (url: string) => createClient(url, { keepAlive: false })
const watch = (url: string, id: string, after?: string) =>
  fresh(url).stream({
    method: 'GET',
    path: `${PATH}/${id}/events`,
    ...(after === undefined ? {} : { headers: { 'last-event-id': after } }),
  })
/** What the stream has from here to its end, heartbeats aside, as `id type`. */
const restOf = async (stream: OpenStream) => shown((await stream.rest()).events)
const shown = (events: readonly SentEvent[]) => events.filter(event => !event.comment).map(event => `${event.id} ${event.event}`)

describe('streams of runs over two workers', () => {
  it('send the same events to all clients on both workers, and send a reconnecting client the events that it missed', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [RUNS] }))
      await using service = await startService({ home, args: ['--workers', '2'] })
      await service.seen(/"event":"worker_ready"/)
      const begun = await fresh(service.url).send({
        method: 'POST',
        path: `${PATH}/run`,
        headers: { prefer: 'respond-async' },
        body: { workflow: 'ask' },
      })
      const { workflow_id: id } = begun.body as { workflow_id: string }
      // new connections are dealt out in turn: half of them are with the worker that has not got the run
      const all = await Promise.all(Array.from({ length: WATCHERS }, () => watch(service.url, id)))
      const seen = await Promise.all(all.map(item => item.until('node_waiting')))
      expect(new Set(seen.map(item => shown(item).join())).size).to.equal(1)
      const { id: last } = seen[0]!.at(-1)!
      const leavers = all.splice(0, 4)
      await Promise.all(leavers.map(leaver => leaver.leave()))
      const back = await Promise.all(leavers.map(() => watch(service.url, id, last)))
      const answered = await fresh(service.url).post(`${PATH}/${id}/answer`, { step: 'may', value: true })
      expect(answered.status, answered.text).to.equal(200)
      const whole = await Promise.all(all.map(restOf))
      const rest = await Promise.all(back.map(restOf))
      expect(new Set(whole.map(item => item.join())).size).to.equal(1)
      const [first = []] = whole
      expect(first.at(-1)).to.match(/run_completed$/)
      for (const item of rest) expect(item).to.deep.equal(first.slice(shown(seen[0]!).length))
      expect(rest[0]).to.not.deep.equal([])
    }))
})
