import type { MetricFamily } from '@svc/core/contracts'
import { expect } from 'chai'
import { createMetricNames, familiesIn } from '../src/metrics-collector.ts'

const family = (more: object = {}): MetricFamily => ({
  name: 'calls_total',
  help: 'Calls.',
  type: 'counter',
  aggregator: 'sum',
  values: [{ labels: { of: 'x' }, value: 1 }],
  ...more,
})
const names = (isolated: readonly string[] = []) => createMetricNames(plugin => isolated.includes(plugin))
const nameOf = (plugin: string, name = 'calls_total', isolated: readonly string[] = []) =>
  names(isolated).named('source', plugin, [family({ name })])[0]!.name

describe('the metrics of a plugin', () => {
  it('begin with its name, those of svc stay as documented', () => {
    expect(nameOf('svc-plugin-weather')).to.equal('plugin_weather_calls_total')
    expect(nameOf('@me/svc-plugin-weather')).to.equal('plugin_me_weather_calls_total')
    expect(nameOf('hello')).to.equal('plugin_hello_calls_total')
    expect(nameOf('svc-plugin-weather', 'plugin_weather_calls_total')).to.equal('plugin_weather_calls_total')
    expect(nameOf('@svc/plugin-http', 'svc_requests_total')).to.equal('svc_requests_total')
  })

  it('cannot change the metrics of svc, whatever name its family or its package has', () => {
    expect(nameOf('svc-plugin-evil', 'svc_requests_total')).to.equal('plugin_evil_svc_requests_total')
    expect(nameOf('@svc/plugin-evil', 'svc_requests_total', ['@svc/plugin-evil'])).to.match(/^plugin_svc_/)
    for (const metricName of ['svc_requests_total', 'calls', 'calls_total_bucket_x', 'other_sum'])
      expect(() => names().named('s', 'svc-plugin-evil', [family({ values: [{ labels: {}, value: 1, metricName }] })])).to.throw(
        metricName
      )
  })

  it('have their prefix in each series of a histogram', () => {
    const values = ['_bucket', '_sum', '_count'].map(end => ({ labels: {}, value: 1, metricName: `calls_total${end}` }))
    const [first] = names().named('s', 'svc-plugin-weather', [family({ type: 'histogram', values })])
    expect(first!.values.map(({ metricName }) => metricName)).to.deep.equal([
      'plugin_weather_calls_total_bucket',
      'plugin_weather_calls_total_sum',
      'plugin_weather_calls_total_count',
    ])
  })

  it('are left out where another plugin has their prefix', () => {
    const found = names()
    found.named('s', '@me/svc-plugin-weather', [family()])
    expect(() => found.named('s', 'svc-plugin-me-weather', [family()])).to.throw('like those of @me/svc-plugin-weather')
    expect(found.named('s', '@me/svc-plugin-weather', [family()])).to.have.length(1)
  })

  it('have no label whose name would write lines of its own', () => {
    for (const label of ['x="1"} 1\nsvc_up 0\n#', 'a b', '', '1a', 'a{'])
      expect(() => familiesIn('s', [family({ values: [{ labels: { [label]: 'x' }, value: 1 }] })]), label).to.throw(
        'not a list of metric families'
      )
  })
})
