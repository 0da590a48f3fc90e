import { expect } from 'chai'
import { readClientServers } from '@svc/mcp-protocol'
import { firstProblem } from '../src/registry/settings.ts'

const importServers = (text: string) => readClientServers(text, entry => firstProblem(entry)?.message)

describe('what other clients keep', () => {
  it('is taken over: commands, addresses, variables', () => {
    const { entries, notes } = importServers(
      JSON.stringify({
        mcpServers: {
          files: { command: 'npx', args: ['-y', 'x'], env: { TOKEN: '${env:MY_TOKEN}' } },
          'My Docs!': { url: 'https://docs.example/mcp', headers: { Authorization: 'Bearer ${DOCS_KEY}' }, disabled: true },
        },
      })
    )
    expect(entries).to.deep.equal([
      { name: 'files', command: 'npx', args: ['-y', 'x'], env: { TOKEN: '${MY_TOKEN}' } },
      { name: 'My-Docs', url: 'https://docs.example/mcp', api_key_env: 'DOCS_KEY', enabled: false },
    ])
    expect(notes).to.deep.equal(['My Docs!: renamed to My-Docs'])
  })

  it('reports what is not imported, or has another meaning here', () => {
    const { entries, notes } = importServers(
      JSON.stringify({
        mcpServers: {
          a: {
            command: 'x',
            args: ['${workspaceFolder}'],
            env: { T: '${input:token}', U: 'v${W}' },
            cwd: '/b',
            timeout: 60_000,
          },
          b: { type: 'sse', url: 'https://b/sse', alwaysAllow: ['x'] },
          c: { type: 'stdio', command: 'x' },
        },
      })
    )
    expect(entries.map(entry => entry.name)).to.deep.equal(['a', 'b', 'c'])
    expect(notes).to.have.length(6)
    expect(notes.join('\n'))
      .to.match(/^a: its cwd is not imported$/m)
      .and.match(/^a: its timeout is not/m)
      .and.match(/^a: its arguments contain/m)
      .and.match(/^a: its variable T contains/m)
      .and.match(/^b: its alwaysAllow is not/m)
      .and.match(/^b: it uses SSE/m)
  })

  it('reports servers that it cannot import, without a key', () => {
    const { entries, notes } = importServers(
      JSON.stringify({
        mcpServers: { a: { url: 'https://a/', headers: { Authorization: 'Bearer abc123' } }, b: {}, c: { url: 'ftp://x' } },
      })
    )
    expect(entries.map(entry => entry.name)).to.deep.equal(['a'])
    expect(notes).to.have.length(3)
    expect(notes.join('\n')).to.include('b: left out').and.include('c: left out').and.not.include('abc123')
    for (const text of ['{', '[]', '{"a": 1}'])
      expect(() => importServers(text))
        .to.throw()
        .with.property('code', 'MCP_IMPORT_INVALID')
  })
})
