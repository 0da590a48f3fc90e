import { expect } from 'chai'
import { createDistribution, histogram } from '@svc/plugin-kit'

describe('a histogram', () => {
  it('counts a value in each bucket whose bound it does not exceed', () => {
    const seconds = createDistribution([1, 5])
    for (const value of [0.5, 1, 3, 9]) seconds.add(value)
    const { values, ...family } = histogram('s', 'Seconds.', [[{ of: 'a' }, seconds]])
    expect(family).to.deep.equal({ name: 's', help: 'Seconds.', type: 'histogram', aggregator: 'sum' })
    expect(values).to.deep.equal([
      { labels: { le: 1, of: 'a' }, value: 2, metricName: 's_bucket' },
      { labels: { le: 5, of: 'a' }, value: 3, metricName: 's_bucket' },
      { labels: { le: '+Inf', of: 'a' }, value: 4, metricName: 's_bucket' },
      { labels: { of: 'a' }, value: 13.5, metricName: 's_sum' },
      { labels: { of: 'a' }, value: 4, metricName: 's_count' },
    ])
  })
})
