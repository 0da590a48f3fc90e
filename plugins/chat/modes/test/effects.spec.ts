import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Chat, type Effect, Providers, Selection, Tools } from '@svc/core/contracts'
import { item, testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const BASE = ['store-memory', 'conversations', 'selection', 'modes', 'chat', 'model-calls'].map(pluginFolder)
const EFFECTS: readonly Effect[] = ['read', 'write', 'execute', 'network']

/** The tools that each mode lets a model see; a tool is named by its effects. */
const SEEN: Readonly<Record<string, readonly string[]>> = {
  build: ['none', ...EFFECTS, 'read_network', 'read_write'],
  plan: ['none', 'read', 'network', 'read_network'],
  review: ['none', 'read', 'network', 'read_network'],
  delegate: ['none', ...EFFECTS, 'read_network', 'read_write'],
  explore: ['none', 'read', 'network', 'read_network'],
}
const TOOLS: Readonly<Record<string, readonly Effect[]>> = {
  none: [],
  ...Object.fromEntries(EFFECTS.map(effect => [effect, [effect]])),
  read_network: ['read', 'network'],
  read_write: ['read', 'write'],
}

describe('the modes', () => {
  it('let a model see and use the tools whose effects they all allow, and no others', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-modes-'))
    const profiles_file = join(home, 'profiles.yaml')
    await writeFile(profiles_file, 'profiles: { default: {} }\n')
    const offered: string[][] = []
    const prompts: string[] = []
    const provider = {
      features: { tool_calling: true, streaming: true, vision: false },
      models: async () => ({ models: [{ id: 'm' }], open: false }),
      countTokens: async () => 1,
      async *chat(request: {
        tools?: readonly { name: string }[]
        messages: readonly { role: string; parts: readonly object[] }[]
      }) {
        offered.push((request.tools ?? []).map(tool => tool.name))
        prompts.push(request.messages[0]?.role === 'system' ? (request.messages[0].parts[0] as { text: string }).text : '')
        yield { type: 'finish' as const, reason: 'stop' as const }
      },
      probe: async () => undefined,
    }
    const tools = Object.entries(TOOLS).map(([name, effects]) =>
      item(Tools, name, {
        description: 'for a test',
        category: 'text',
        effects,
        parameters: { type: 'object' },
        call: async () => ({ content: [{ type: 'text', text: 'done' }] }),
      })
    )
    const host = await testHost(BASE, {
      give: [item(Providers, 'p', provider), ...tools],
      config: { selection: { profiles_file } },
    })
    for (const [mode, seen] of Object.entries(SEEN)) {
      await host.service(Selection).switchMode(mode, testContext())
      await host.service(Chat).reply({ message: 'hi' }, testContext())
      expect(offered.at(-1)?.toSorted(), mode).to.deep.equal(seen.toSorted())
      expect(prompts.at(-1) === '', mode).to.equal(mode === 'build')
      for (const name of Object.keys(TOOLS)) {
        const asked = host.service(Chat).reply({ message: 'hi', tools: [name] }, testContext())
        const outcome = await asked.then(
          () => 'taken',
          (error: { code: string }) => error.code
        )
        expect(outcome, `${mode}: ${name}`).to.equal(seen.includes(name) ? 'taken' : 'INVALID_VALUE')
      }
    }
    await host.close()
    await rm(home, { recursive: true })
  })
})
