import type { Tool } from '@svc/core/contracts'
import { expect } from 'chai'
import { messageOf } from '../src/sessions.ts'
import { resultView, viewOf } from '../src/tool-view.ts'

const tool = (effects: Tool['effects'], title?: string): Tool => ({
  ...(title === undefined ? {} : { title }),
  description: '',
  category: 'text',
  effects,
  parameters: {},
  call: async () => ({ content: [] }),
})

describe('the view of a tool call', () => {
  it('has a kind by the effects of the tool, and by its name where that says more', () => {
    const kinds: [name: string, effects: Tool['effects'], kind: string][] = [
      ['read_file', ['read'], 'read'],
      ['write_file', ['write'], 'edit'],
      ['edit_file', ['read', 'write'], 'edit'],
      ['delete_file', ['write'], 'delete'],
      ['move_file', ['write'], 'move'],
      ['search_text', ['read'], 'search'],
      ['find_files', ['read'], 'search'],
      ['search_web', ['network'], 'search'],
      ['fetch_page', ['network'], 'fetch'],
      ['run_command', ['execute', 'write'], 'execute'],
      ['delete_all', ['execute'], 'execute'],
      ['move_eyes', ['read'], 'read'],
      ['calculate', [], 'other'],
    ]
    for (const [name, effects, kind] of kinds) expect(viewOf(name, tool(effects), {}, '/').kind, name).to.equal(kind)
    expect(viewOf('unknown', undefined, {}, '/').kind).to.equal('other')
  })

  it('has a title of one line that names the subject', () => {
    expect(viewOf('read_file', tool(['read'], 'Read'), { path: 'a.txt' }, '/').title).to.equal('Read: a.txt')
    expect(viewOf('run', tool(['execute']), { command: 'npm', args: ['test', '-s'] }, '/').title).to.equal('run: npm test -s')
    const hostile = viewOf('x', undefined, { path: `a\n\u001b[31m\u202e${'b'.repeat(500)}` }, '/').title
    expect(hostile)
      .to.have.length(160)
      .and.not.match(/\p{Cc}|\p{Cf}/u)
    expect(viewOf('x', undefined, { path: '', query: 5 }, '/').title).to.equal('x')
  })

  it('leaves out data that is nested too deeply', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`)
    expect(viewOf('x', undefined, deep, '/')).to.not.have.property('rawInput')
    expect(resultView(deep)).to.deep.equal({ content: [] })
    expect(viewOf('x', undefined, { path: 'a\u0000b' }, '/').locations).to.deep.equal([])
  })
})

describe('the message of a prompt', () => {
  it('has a fence that embedded text cannot close', () => {
    const text = 'x ````` y'
    const message = messageOf([{ type: 'resource', resource: { uri: 'file:///a', text } }])
    expect(message).to.equal(`[a](file:///a)\n\nContent of file:///a:\n\`\`\`\`\`\`\n${text}\n\`\`\`\`\`\``)
  })

  it('survives URIs that cannot be decoded', () => {
    expect(messageOf([{ type: 'resource', resource: { uri: 'file:///%E0%A4%A', text: '' } }])).to.contain('[%E0%A4%A]')
    expect(messageOf([{ type: 'resource', resource: { uri: '', text: '' } }])).to.be.a('string')
  })
})
