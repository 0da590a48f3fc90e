import { redactData, redactError, redactText, registerSecret } from '@svc/core'
import { expect } from 'chai'

const VALUE = 'canary-of-redaction-0123'

describe('redaction', () => {
  it('replaces a value in every form, and leaves other text as it is', () => {
    const end = registerSecret(VALUE)
    const forms = [
      VALUE,
      JSON.stringify({ VALUE }),
      Buffer.from(VALUE).toString('hex'),
      Buffer.from(`me:${VALUE}`).toString('base64'),
    ]
    for (const form of forms)
      expect(redactText(`<${form}>`))
        .to.include('[secret]')
        .and.not.include(form.slice(8, 30))
    expect(redactText('canary-of-redaction')).to.equal('canary-of-redaction')
    end()
  })

  it('recognizes a long value that is cut, and a private key line by line', () => {
    const long = Array.from({ length: 400 }, (_, at) => `part${at}`).join('-')
    const lines = Array.from({ length: 5 }, (_, at) => `${at}MIIEvgIBADANBgkqhkiG9w0BAQEFAAS`)
    const ends = [registerSecret(long), registerSecret(lines.join('\n'))]
    expect(redactText(`with ${long.slice(0, 700)}… and ${long.slice(0, 90)}`)).to.equal('with [secret]… and [secret]')
    for (const line of lines) expect(redactText(`key: ${line}`)).to.equal('key: [secret]')
    ends.forEach(end => end())
  })

  it('ignores values that are ordinary text', () => {
    for (const value of ['', 'short', '         ', 'x'.repeat(65_536), 'abababababab']) registerSecret(value)
    expect(redactText('short          xxxxxxxxxxxxxxxxxxx abababababab')).to.include('xxxxxxxxxxxxxxxxxxx abababababab')
  })

  it('handles data that contains itself, and very deep data', () => {
    const end = registerSecret(VALUE)
    const own: Record<string, unknown> = { at: VALUE }
    own.own = own
    own.list = [own, own, own]
    expect(redactData(own).at).to.equal('[secret]')
    let deep: unknown = VALUE
    for (let level = 0; level < 5_000; level++) deep = [deep]
    expect(() => redactData(deep)).to.not.throw()
    const same = { a: ['b'] }
    expect(redactData(same)).to.equal(same)
    end()
  })

  it('cleans an error with its causes, and still knows a value shortly after its end', () => {
    registerSecret(VALUE)()
    const error = Object.assign(new Error(`outer ${VALUE}`, { cause: new Error(VALUE) }), {
      details: { VALUE },
      problems: [new Error(VALUE)],
    })
    redactError(error)
    const text = `${error.stack} ${String((error.cause as Error).stack)} ${JSON.stringify(error.details)} ${error.problems[0]!.stack}`
    expect(text).to.include('outer [secret]').and.not.include(VALUE)
    for (const odd of [null, undefined, 'text', 7, Object.freeze(new Error('frozen'))]) redactError(odd)
  })
})
