import { expect } from 'chai'
import { logToolFailure, toolFailure } from '@svc/plugin-kit'

const failureOf = (thrown: unknown) => toolFailure('tides', { thrown, plugin: 'svc-plugin-tides' })

describe('toolFailure', () => {
  it('names plugin, tool, code and stack of an error', () => {
    const thrown = Object.assign(new Error('no tide'), { code: 'TIDE_LOST' })
    const { err, ...rest } = toolFailure('tides', { thrown, plugin: 'svc-plugin-tides', requestId: 'r1' })
    expect(rest).to.deep.equal({ tool: 'tides', of: 'svc-plugin-tides', code: 'TIDE_LOST', request_id: 'r1' })
    expect(err.stack).to.equal(thrown.stack)
  })

  it('names the class of an error without a code, also if it came from another process', () => {
    expect(failureOf(new TypeError('x is not a function')).code).to.equal('TypeError')
    const crossed = Object.assign(new Error('x'), { code: 'INTERNAL_ERROR', stack: 'RangeError: x\n    at tide (index.js:1)' })
    expect(failureOf(crossed).code).to.equal('RangeError')
  })

  it('reads whatever a tool throws, and never throws itself', () => {
    const odd: unknown[] = [
      undefined,
      null,
      '',
      'only words',
      42,
      Symbol('tide'),
      () => 1,
      {
        get message(): string {
          throw new Error('no')
        },
      },
      new Proxy(
        {},
        {
          get() {
            throw new Error('no')
          },
        }
      ),
      Object.assign(new Error('x'), { code: 7, stack: 8 }),
    ]
    for (const thrown of odd) {
      const { code, err } = failureOf(thrown)
      expect(code).to.be.a('string').and.not.equal('')
      expect(err.message).to.be.a('string').and.not.equal('')
      expect(err.stack).to.be.a('string')
    }
    expect(failureOf('only words').err.message).to.equal('only words')
    expect(failureOf(new Error('x'.repeat(1e6))).err.message.length).to.be.at.most(1000)
  })

  it('writes one line', () => {
    const lines: [object, string][] = []
    logToolFailure({ warn: (...line) => void lines.push(line) }, 'tides', { thrown: 'x', plugin: 'svc-plugin-tides' })
    expect(lines.map(([, message]) => message)).to.deep.equal(['the tool "tides" of svc-plugin-tides threw an error'])
  })
})
