import { once } from 'node:events'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { askOn, openSilent } from './support/ask-once.ts'
import { inNewHome, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'

const portOf = (url: string) => Number(new URL(url).port)

async function workerOf(home: string): Promise<number> {
  using server = await reachServer(home)
  const { workers } = await server.control.info(systemContext(AbortSignal.timeout(60_000)))
  return workers.find(worker => worker.state === 'ready')!.pid
}

describe('connections of svc serve', () => {
  const it = sideBySideIn(inNewHome)

  it('are not refused and do not hang while the only worker is killed and replaced', async home => {
    await using service = await startService({ home })
    const clients = askOn(portOf(service.url), 8, '/health/live')
    for (const kills of [1, 2]) {
      await clients.more(100)
      const ready = service.seen(/"event":"worker_ready"/, kills)
      process.kill(await workerOf(home), 'SIGKILL')
      await ready
    }
    await clients.more(100)
    const { answered, reset, refused, hung } = await clients.end()
    expect({ refused, hung }).to.deep.equal({ refused: 0, hung: 0 })
    expect(answered).to.be.at.least(250)
    expect(reset, 'those that the dead workers held').to.be.at.most(2 * 8)
  })

  it('are closed in time if they send nothing or stop within the headers', async home => {
    await using service = await startService({ home, env: { SVC_SERVER__HEADERS_TIMEOUT_MS: '300' } })
    const [silent, halfway] = [await openSilent(portOf(service.url)), await openSilent(portOf(service.url))]
    const ended = once(silent.resume(), 'close')
    let text = ''
    halfway.setEncoding('utf8').on('data', chunk => (text += chunk))
    halfway.write('GET /health HTTP/1.1\r\nHost: local')
    await Promise.all([ended, once(halfway, 'close')])
    expect(text)
      .to.match(/^HTTP\/1.1 400 /)
      .and.include('was not received in time')
  })
})
