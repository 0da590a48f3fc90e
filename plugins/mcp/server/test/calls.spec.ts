import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { expect } from 'chai'
import { echo, startMcpHost, refusal, toolOf } from './support/host.ts'

interface LoggedFailure {
  readonly level: number
  readonly tool?: string
  readonly of?: string
  readonly code?: string
  readonly request_id?: string
  readonly err: { readonly stack: string }
}

describe('a call over plain HTTP', () => {
  it('ends after the time that the caller gives, and the tool hears of it', async () => {
    const ended = Promise.withResolvers<string>()
    const slow = toolOf(
      (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            ended.resolve('aborted')
            reject(signal.reason)
          })
        })
    )
    await using mcpHost = await startMcpHost({ tools: { slow } })
    const reported = await mcpHost.ask.post('/tools/slow/call', { timeout: 0.05 })
    expect(refusal(reported)).to.deep.equal([504, 'TIMEOUT', { tool: 'slow', timeout_ms: 50 }])
    expect(await ended.promise).to.equal('aborted')
  })

  it('passes the deadline of the caller to the tool', async () => {
    const deadlines: (number | undefined)[] = []
    const asked = toolOf(async (_args, { deadline }) => {
      deadlines.push(deadline)
      return { content: [] }
    })
    await using mcpHost = await startMcpHost({ tools: { asked } })
    for (const body of [{}, { timeout: 900 }]) expect((await mcpHost.ask.post('/tools/asked/call', body)).status).to.equal(200)
    expect(deadlines[0]).to.equal(undefined)
    expect(deadlines[1]! - Date.now()).to.be.within(600_000, 900_000)
  })

  it('leaves one line in the log for what the tool throws, and none for an error that it returns', async () => {
    const lines: string[] = []
    const throws = toolOf(async () => {
      throw Object.assign(new Error('the tide is lost'), { code: 'TIDE_LOST' })
    })
    const fails = toolOf(async () => ({ content: [{ type: 'text', text: 'no wind' }], isError: true }))
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    await using mcpHost = await startMcpHost({ tools: { throws, fails }, log })
    for (const name of ['throws', 'fails']) {
      const { body } = await mcpHost.ask.post(`/tools/${name}/call`, {})
      expect(JSON.stringify(body), name).to.not.match(/calls\.spec|\\n +at /)
    }
    const logged = lines.map(line => JSON.parse(line) as LoggedFailure).filter(({ tool }) => tool !== undefined)
    expect(logged.map(({ level, tool, of, code }) => ({ level, tool, of, code }))).to.deep.equal([
      { level: 40, tool: 'throws', of: 'test:tools/throws', code: 'TIDE_LOST' },
    ])
    expect(logged[0]!.request_id).to.be.a('string')
    expect(logged[0]!.err.stack).to.match(/the tide is lost\n +at /)
  })

  it('is aborted when its caller leaves', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    const slow = toolOf((_args, { signal }) => {
      begun.resolve(signal)
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    await using mcpHost = await startMcpHost({ tools: { slow } })
    const leaving = new AbortController()
    const reported = mcpHost.ask.raw('/tools/slow/call', { method: 'POST', signal: leaving.signal }).catch(() => 'left')
    const signal = await begun.promise
    const aborted = new Promise(resolve => signal.addEventListener('abort', resolve))
    leaving.abort()
    await aborted
    expect(await reported).to.equal('left')
  })

  it('finds tools that come later, and no more those that went', async () => {
    const adding = Promise.withResolvers<() => () => void>()
    const late = definePlugin({ setup: scope => adding.resolve(() => scope.add(Tools, 'late', echo)) })
    await using mcpHost = await startMcpHost({ give: [{ name: 'late', use: late }] })
    const names = async () =>
      ((await mcpHost.ask.get('/tools')).body.tools as unknown as { name: string }[]).map(({ name }) => name)
    expect(await names()).to.deep.equal(['echo'])
    const remove = (await adding.promise)()
    expect(await names()).to.deep.equal(['echo', 'late'])
    remove()
    expect(await names()).to.deep.equal(['echo'])
    expect((await mcpHost.ask.post('/tools/late/call', {})).status).to.equal(404)
  })
})
