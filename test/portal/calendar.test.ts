import { expect, it } from "vitest";
import { ENGLISH } from "../../src/pages/locale.ts";
import { dayOf, daysBetween, startOfDay } from "../../src/portal/calendar.ts";

it.each([
  ["UTC", "2026-11-29", "2026-11-29T00:00:00.000Z"],
  ["Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00.000Z"],
  ["Europe/Berlin", "2026-03-30", "2026-03-29T22:00:00.000Z"],
  ["Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00.000Z"],
  ["Europe/Berlin", "2026-10-26", "2026-10-25T23:00:00.000Z"],
  ["Pacific/Auckland", "2026-04-05", "2026-04-04T11:00:00.000Z"],
  ["America/New_York", "2026-11-01", "2026-11-01T04:00:00.000Z"],
  ["Asia/Kathmandu", "2026-11-29", "2026-11-28T18:15:00.000Z"],
  // In this zone, clocks go from 00:00 to 01:00 in spring, and from 00:00 back to 23:00 in autumn.
  ["Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00.000Z"],
  ["Asia/Beirut", "2026-10-25", "2026-10-24T22:00:00.000Z"],
])("in the time zone %s, the day %s begins at %s", (timeZone, day, start) => {
  const zone = ENGLISH.in(timeZone);
  const found = startOfDay(day, zone);
  expect(found.toISOString()).toBe(start);
  expect([dayOf(found, zone), dayOf(new Date(found.getTime() - 1), zone) < day]).toEqual([day, true]);
});

it("daysBetween returns each day of a month", () => {
  const days = daysBetween("2028-02-01", "2028-03-01");
  expect([days.length, days[0], days.at(-1)]).toEqual([29, "2028-02-01", "2028-02-29"]);
});
