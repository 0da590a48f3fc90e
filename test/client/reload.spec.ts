import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, type Schemas } from '@svc/client'
import { reachServer } from '@svc/runtime'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { inNewHome } from '../support/service.ts'
import { post, startTwo } from '../support/two-workers.ts'

const RUNS = fileURLToPath(new URL('../support/runs.ts', import.meta.url))
const CHATS = 30

async function reload(home: string): Promise<void> {
  using server = await reachServer(home)
  expect((await server.control.reload(testContext())).problems).to.deep.equal([])
}

/** Takes the conversations of completed turns, and the workers where they ran. */
async function follow(svc: Client, controller: AbortController, seen: string[], sources: Set<string>): Promise<void> {
  for await (const event of svc.events({ types: 'turn_completed' }, { signal: controller.signal })) {
    sources.add(event.source)
    seen.push(String(event.data.conversation_id))
  }
}

describe('the client and a server that reloads', function () {
  this.timeout(120_000)

  it('misses no event and no reply, and sees none twice', function () {
    return inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [RUNS] }))
      await using service = await startTwo({ home })
      const svc = createClient({ url: service.url })
      const controller = new AbortController()
      const seen: string[] = []
      const sources = new Set<string>()
      const following = follow(svc, controller, seen, sources).catch((error: unknown) => error)
      while (sources.size < 2) await post(service.url, '/api/v1/chat', { message: 'warm' })

      const { workflow_id: id } = await svc.runs.start({ workflow: 'ask' }, { waitSeconds: 0 })
      const run: Schemas['WorkflowEvent'][] = []
      let reloading = Promise.resolve()
      const running = (async () => {
        for await (const event of svc.runs.events(id)) run.push(event)
      })()

      const wanted: string[] = []
      for (let turn = 0; turn < CHATS; turn++) {
        if (turn === 5) reloading = reload(home)
        if (turn === 20) await reloading
        wanted.push((await svc.chat.reply({ message: `turn ${turn}` })).conversation_id)
      }
      const [question] = (await svc.runs.get(id)).waiting_for ?? []
      await svc.runs.answer(id, { step: question!.step, value: true })
      await running
      expect(run.at(-1)).to.include({ type: 'run_completed' })
      expect(run).to.deep.equal(await Array.fromAsync(svc.runs.events(id)))

      while (wanted.some(conversation => !seen.includes(conversation))) await svc.chat.reply({ message: 'after' })
      const reason = new Error('done')
      controller.abort(reason)
      expect(await following).to.equal(reason)
      expect(seen.filter(conversation => wanted.includes(conversation)))
        .to.have.members(wanted)
        .and.have.length(CHATS)
      expect(sources.size, 'workers before and after the reload').to.be.above(2)
    })
  })
})
