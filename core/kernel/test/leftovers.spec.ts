import { once } from 'node:events'
import { createServer } from 'node:net'
import { definePlugin, Host, type Plugin } from '@svc/core'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { entry } from './support/kernel.ts'

describe('a plugin that leaves something open', () => {
  const leave = async (plugin: Plugin, strict = true) => failureOf((await testHost([entry('messy', plugin)], { strict })).close())

  it('is named by testHost, with what and where', async () => {
    let timer: NodeJS.Timeout | undefined
    const error = await leave(definePlugin({ setup: () => void (timer = setInterval(() => {}, 1000)) }))
    clearInterval(timer)
    expect(error).to.include({ code: 'LEFTOVERS', plugin: 'messy' })
    expect(error.message).to.match(/^messy left open: a timer \(leftovers\.spec\.ts:\d+\)$/)
    expect(error.hint).to.include('scope.defer')
  })

  it('is named for a server it opened in a tap, strict or not', async () => {
    for (const strict of [true, false]) {
      const server = createServer()
      const error = await leave(
        definePlugin({
          setup: scope =>
            void scope.tap(Host.hooks.ready, async () => {
              await once(server.listen(0, '127.0.0.1'), 'listening')
              return undefined
            }),
        }),
        strict
      )
      server.close()
      expect(error).to.include({ code: 'LEFTOVERS', plugin: 'messy' })
      expect(error.message).to.include('a server')
    }
  })

  it('is not blamed for what the test opened, nor for what does not keep the process alive', async () => {
    const host = await testHost([entry('clean', definePlugin({ setup: () => void setInterval(() => {}, 1000).unref() }))])
    const mine = setInterval(() => {}, 1000)
    await host.close()
    clearInterval(mine)
  })

  it('is distinct from another host that still runs', async () => {
    let timer: NodeJS.Timeout | undefined
    await using _other = await testHost([
      entry(
        'other',
        definePlugin({
          setup: scope => {
            const mine = setInterval(() => {}, 1000)
            scope.defer(() => clearInterval(mine))
          },
        })
      ),
    ])
    const error = await leave(definePlugin({ setup: () => void (timer = setTimeout(() => {}, 60_000)) }))
    clearTimeout(timer)
    expect(error.plugin).to.equal('messy')
  })
})
