import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { wait } from '../support/wait.ts'
import { newHome, post, startService } from '../support/service.ts'

const SPINS = `import { definePlugin } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'
export default definePlugin({
  setup({ add }) {
    add(WorkflowNodes, 'spin', {
      description: 'Never ends.', settings: { type: 'object', additionalProperties: false }, repeatable: true,
      async *run() { for (;;); },
    })
  },
})`

describe('a run whose node stops the event loop', () => {
  it('is abandoned before its worker crashes count as a crash loop', async () => {
    const home = await newHome()
    try {
      const place = join(home, 'spins')
      await mkdir(place)
      await mkdir(join(home, 'workflows'))
      const svc = { api: 1, kind: 'workflow-node', contributes: { workflow_nodes: ['spin'] } }
      const manifest = { name: 'svc-plugin-spins', version: '1.0.0', type: 'module', main: 'index.js', svc }
      await writeFile(join(place, 'package.json'), JSON.stringify(manifest))
      await writeFile(join(place, 'index.js'), SPINS)
      await writeFile(
        join(home, 'workflows', 'poison.json'),
        JSON.stringify({ name: 'poison', nodes: { first: { type: 'transform', value: 1, next: 'go' }, go: { type: 'spin' } } })
      )
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [place], server: { hang_timeout_ms: 1_000 } }))
      await using service = await startService({ home, cwd: home })
      await post(`${service.url}/api/v1/workflows/run`, { workflow: 'poison', detached: true }).catch(() => {})
      for (;;) {
        const answer = await fetch(`${service.url}/api/v1/workflows/runs`).catch(() => undefined)
        const text = (await answer?.text().catch(() => '')) ?? ''
        if (/"status":"failed"/.test(text)) break
        expect(service.child.exitCode, service.output().slice(-2000)).to.equal(null)
        await wait()
      }
      expect((await fetch(`${service.url}/health/live`)).status).to.equal(200)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }).timeout(60_000)
})
